"""The answer: what is shown of the memories that were found.

response      the rows of a page that fit a number of tokens, counts, and where to go on
previews      the part of a memory that answers, with the query's words marked
cited_answer  sentences with citations, by a language model
"""
