#!/bin/sh
# Makes the vault, unless it is there, and imports the demo notes: again, those that changed.
set -eu
memory-store stats >/dev/null 2>&1 || memory-store init --key-file "$MEMORY_STORE_KEY_FILE"
memory-store import "${NOTES:-/project/demo/notes}"
