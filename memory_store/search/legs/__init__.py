"""The legs of a search, each a way to list memories by the query, best first.

keyword       BM25 over the hashes of its words
topic         memories tagged with its words
vector        the nearest windows to its meaning
scopes        for the vector leg: collections by the model of their vectors
surroundings  for both: what stands beside a memory, in what is told in order
depth         how long a list is
"""
