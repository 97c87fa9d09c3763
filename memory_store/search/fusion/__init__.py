"""Fusion: the legs' lists become one, and the best of it is the pool.

rank_fusion      reciprocal rank fusion, and the scale of its scores
leg_weights      what each leg counts
pool             what may be opened for this page
vector_feedback  a second vector search, towards what the first one found
"""
