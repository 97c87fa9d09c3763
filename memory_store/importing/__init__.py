"""From files, tables and standard input to memory drafts."""
