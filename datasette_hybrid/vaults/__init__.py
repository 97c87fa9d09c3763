"""The vaults behind Datasette's databases: found, opened, rested, locked."""
