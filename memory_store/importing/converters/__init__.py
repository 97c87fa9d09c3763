"""Documents that are not text: PDF, office files, web pages, books, notebooks, mail.

Boundary: a parser of hostile bytes never runs beside keys. Each kind is read in a process of its
own, which has no keys in its environment, opens no file and no connection once its parser is
loaded, and is ended where it takes too long or too much memory. Bytes go there and text comes back
through pipes: nothing is written to a disk.

document   what a converter gives back, and the bounds that all of them keep
process    the processes, as the importer sees them
child      one of them: locks itself in, then reads what it is sent
others     one module for each kind
"""
