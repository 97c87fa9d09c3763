#!/bin/sh
# A search node: Datasette, with the vault opened by its key. Nodes that share what signs cookies
# let you in at each of them once you are signed in at one.
#   node.sh PORT [HOST]
set -eu
DATASETTE_SECRET=$(cat "$COOKIES")
export DATASETTE_SECRET
exec datasette serve --root --host "${2:-127.0.0.1}" --port "$1" --metadata metadata.json
