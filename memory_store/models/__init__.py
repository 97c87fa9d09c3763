"""The embedding model and the reranker, behind small interfaces. No keys here."""
