"""The answer: what is shown of the memories that were found.

response      the rows of a page, counts, and where to go on
previews      the part of a memory that answers, with the query's words marked
token_budget  as many results as fit a number of tokens
meaning_only  the sentence for an answer in which no memory holds a word of the query
cited_answer  sentences with citations, by a language model
"""
