"""Searches that an actor keeps under a name, as pages, JSON and feeds."""
