"""One memory: read, written, changed, deleted, on pages and over JSON."""
