"""One promise over all tables: the `Specification`, its identity, and the files that hold it.

In: tables, ε and a design's name. Out: a frozen value with a hash, the ε of every report, and the design of every
table. Devices and servers read the same specification; nothing here draws or reads data.
"""
