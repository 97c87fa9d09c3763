"""An opened vault: its keys, its index, those who read and write it, until it is locked."""
