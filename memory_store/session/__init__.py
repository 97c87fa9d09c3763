"""An opened vault: its keys, settings and index, its readers and its writer, until it is locked."""
