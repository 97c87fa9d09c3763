"""The in-memory index: keyed term postings, topics, vectors. Hashes and numbers, never words."""
