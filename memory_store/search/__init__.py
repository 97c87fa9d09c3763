"""The search pipeline, a module for each stage, in the order data goes through them.

What is asked
    options           search options from keywords
    recipes           every ranking as numbers and switches
    planning          options checked, recipe chosen, sizes worked out
    context           what of the vault a search may reach
    pipeline          runs the stages below; each hands on what it made, none looks back

Analyse
    query             the language people type
    analysis          its words as keyed hashes, its filters as one mask
    patterns, literal regular expressions, which take a way of their own

Expand
    expansion         a language model words the query in other ways

Fetch
    legs/             keyword, topic and vector: each lists memories, best first
    candidates        what they list, and what becomes of one memory later
    fetching          the legs side by side
    deduplication     one memory for each content
    feedback          a second vector search, towards what the first one found

Fuse
    leg_weights       what each leg counts for
    fusion            several lists become one, which is cut to the pool
    pool, paging      what may be opened for this page, and what waits for the next

Open, rerank, adjust
    opening           the one place where a search decrypts
    reading           which of the pool is opened, and who reads it:
    late_interaction  the embedding model, word by word
    reranking         a cross-encoder; chunk_choice says which part of a text it reads
    adjustments       boosts, demotions and floors; file_rules, by memory_files, the files' own

Preview
    matching          the query's words found in opened text
    previews          the part that answers
    budget            as many results as fit a number of tokens
    facets            how all that was found divides
    answering         rows, counts and where to go on
    asking            sentences out of what was found, by a language model

What is told of it
    degraded          what the search goes without, and what mends it
    nearness          that no memory holds a word of the query: what was found is merely near
    tracing           what each stage did, noted while it does it
    explaining        the same as data; telling: in words
    restrictions      what each filter alone lets through
    why, why_literal  why one memory is in the answer or not; leg_places: where each leg has it
"""
