"""Keys, sealing and blinding. Everything here uses primitives of ``cryptography`` only."""
