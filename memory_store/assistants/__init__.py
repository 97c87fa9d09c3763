"""Assistants: what a language model may do with a vault, and how it is reached.

tools    what it may do: six tools, the record each takes, and what each answers
server   the same as an MCP server on standard input and output
clients  the entry of that server in an assistant's own configuration

Boundary: text of memories leaves for whichever assistant the user has connected. It is given as
data, in the fields of an answer; no description, instruction or error quotes a memory. An assistant
reads and writes what :class:`memory_store.assistants.tools.Assistant` lets it, and nothing else.
"""
