"""The search page and its JSON and CSV."""
