"""Facets: how a whole result divides by type, status, collection, topic, folder and time.

counts     how many memories have each value
selection  which values to show
"""
