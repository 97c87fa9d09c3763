"""The keeper: one local process that keeps a vault open, as ssh-agent does keys. Its callers' side.

address  where its socket lies, and whether the folder can be trusted
frames   what passes through the socket
client   what a command asks it; imported before all else, so it imports next to nothing
launch   how one is started, and handed the vault

What runs in it is :mod:`memory_store.keeper_process`.

Boundary: text of memories passes through a Unix socket that only the same user can open; both ends
check whose process the other is. No key, passphrase or key file passes through it: the root key
goes to the new process once, through an inherited pipe.
"""
