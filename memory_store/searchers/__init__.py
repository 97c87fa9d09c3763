"""Searches in processes of their own, so that a server's other work need not wait for them.

Python runs one thread at a time: in a server, every search keeps all other requests waiting for as
long as it works. Here an opened vault is opened once more, in other processes: ``pool`` keeps them
and asks them, ``process`` is what runs in each, ``wire`` is what they say to each other.
"""
