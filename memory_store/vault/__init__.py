"""The encrypted file: schema, key slots, rows, changes, segments and manifest."""
