"""What is done with an opened vault, one kind of work a module.

writing      add, edit and delete memories, import files, index again
reading      find a memory by what names it, open it, list many
collections  collections with their settings, and the topics in them
statistics   sizes and counts
searching    what a search runs on, and its models

:class:`memory_store.store.MemoryStore` is the way in: it keeps locks away while these run.
"""
