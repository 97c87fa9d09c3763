"""Who opened what, when, by which surface: noted and shown."""
