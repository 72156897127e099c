"""DuckDB sessions that open only what they are given, and what DuckDB evaluates: public columns and dimension tables.

In: paths and frames. Out: sessions and columns. Other engines' rooms call it; nothing else opens DuckDB.
"""
