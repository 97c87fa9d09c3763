"""The parts of :class:`memory_store.store.MemoryStore`, one kind of call a module.

opened       what they work on, and how a method enters it
writing      add, change, publish, delete, import, index again
collections  collections, their members, and the topics in them
"""
