"""Imported once by the process that every worker is forked from: what takes a second to load.

No model of vectors is among it: its threads would not survive the fork.
"""

import fastembed  # noqa: F401

import memory_store.actions.searches
import memory_store.index.vectors
import memory_store.models.embedder
import memory_store.store  # noqa: F401
from memory_store.text.language import detect_language

detect_language("Any sentence of some length loads the model that recognises languages.")
