"""The legs of a search, each a way to list memories by the query, best first.

retrieval        the legs side by side
keyword          BM25 over the hashes of its words
topic            memories tagged with its words
vector           the nearest windows to its meaning
neighbours       for keyword and vector: what stands beside a memory in an ordered collection
contents         one memory for each content, and how long a list is
"""
