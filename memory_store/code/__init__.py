"""Source code as text: its language, its definitions, its chunks. Pure functions, no vault."""
