#!/bin/sh
# Makes, once, what the database and the nodes need to trust each other.
#   secrets.sh DATABASE PREPARE NODES
# DATABASE gets a certificate with its key, PREPARE the SQL for a new database. NODES gets the
# certificate of the authority, the password of the role, and what signs cookies. The key of the vault
# is made later, in NODES: the database never sees it.
set -eu
umask 077
database=$1 prepare=$2 nodes=$3
[ ! -e "$nodes/pgpass" ] || exit 0
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
cd "$made"
new_key="-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"

# An authority that signs one certificate, for the host "database". Its key is not kept.
openssl req -x509 $new_key -days 3650 -subj "/CN=the demo's authority" -keyout ca.key -out ca.pem 2>/dev/null
openssl req $new_key -subj "/CN=database" -keyout server.key -out server.csr 2>/dev/null
echo "subjectAltName=DNS:database" > names
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 3650 \
    -extfile names -out server.pem 2>/dev/null

password=$(openssl rand -hex 24)
{
    echo "set password_encryption = 'scram-sha-256';"
    echo "create role notes login password '$password';"
    memory-store storage init --role notes
} > prepare.sql
openssl rand -hex 24 > superuser
mv prepare.sql "$prepare/"
mv server.pem server.key superuser "$database/"

openssl rand -hex 32 > "$nodes/cookies"
mv ca.pem "$nodes/"
echo "database:*:notes:notes:$password" > "$nodes/pgpass.new"
mv "$nodes/pgpass.new" "$nodes/pgpass"  # last: now all of it is there
