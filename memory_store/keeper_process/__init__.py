"""What runs in a keeper: one vault, opened, and the commands that are done on it for others.

__main__   the process: it takes the vault over, says so, and keeps it until an end comes
server     its socket: who may ask, what, for how long, and when it ends
commands   one command at a time, as the process that asks would do it itself

Boundary: holds the vault's keys, index and models. It does the commands that
:mod:`memory_store.keeper.client` lists and no others: none of them gives a key away, adds one or
lets another person in. It writes no core dump, and other processes of the user cannot look into
its memory where the system knows how to forbid that.
"""
