"""Reranking: who reads the pool, and in which order it leaves them.

pool_order        which of the ways below this search takes, and what each of them opens
cross_encoder     a model reads query and text together, and which part of a long text
late_interaction  the embedding model, word by word
file_rules        prx's rules, by the files that memories came from
"""
