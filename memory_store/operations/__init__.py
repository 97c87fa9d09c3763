"""What is done with an opened vault, one kind of work a module.

writing      add memories, import files, index again
editing      change, add and delete memories, one or many at once
publishing   a memory's content in another collection, too
reading      find a memory by what names it, open it, list many
collections  collections with their settings, and the topics in them
members      who may use a collection
statistics   sizes and counts
searching    what a search runs on, and its models

:class:`memory_store.store.MemoryStore` is the way in: it keeps locks away while these run.
"""
