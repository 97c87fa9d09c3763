"""Explanations: what each stage did, and how a memory came to its place.

account          the same as data: stages, filters, and the way of each result
words            the same in words, for the terminal and the search page
verdict          why one memory is in the answer or not
literal_verdict  the same for a regular expression
"""
