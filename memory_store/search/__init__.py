"""The search pipeline: a module or a folder for each stage, in the order a query goes through them.

pipeline      runs the stages; each hands on what it made, none looks back
context       what of the vault a search may reach
recipes/      every ranking as numbers and switches, one file for each system
query/        the language people type, its plan, its words as keyed hashes
expansion/    other wordings of it, by a language model
legs/         keyword, topic and vector: each lists memories, best first
candidates    what the legs list, what becomes of one memory, and what the answer is made of
fusion/       several lists become one, which is cut to the pool that may be opened
opening       the one place where a search decrypts
reranking/    who reads the pool, and in which order it leaves them
adjustments   boosts, demotions and floors after that
answer/       previews, the token budget, the rows of a page
facets/       how the whole result divides, and which part of it to show
paging        what waits for the next page
resemblance   what says nearly the same as a text, by sealed shingles alone
literal       regular expressions, which take a way of their own
trace         notes that the stages leave while they run
explain/      what each stage did, how a result came to its place, why a memory is missing
degraded      what a search goes without, and what mends it
"""
