"""Datasette's own pages of a vault's tables."""
