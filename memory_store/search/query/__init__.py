"""The query: what was typed, what it means for this vault, and what is going to be done.

language             the query language, parsed
plan                 recipe chosen, sizes worked out; the search that goes from stage to stage
analysis             words as keyed hashes, all filters as one mask
more_like_this       a stored memory as the query
regular_expressions  the whole words that a text must hold for a pattern to match
word_matcher         a query's words, found in opened text
"""
