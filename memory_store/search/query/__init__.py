"""The query: what was typed, what it means for this vault, and what is going to be done.

language             the query language, parsed
plan                 recipe chosen, sizes worked out; the search that goes from stage to stage
analysis             words as keyed hashes, all filters as one mask
more_like_this       a stored memory as the query
regular_expressions  the texts that whatever a pattern matches holds
holders              which memories may hold what a pattern needs, by the sealed index
word_matcher         a query's words, found in opened text
"""
