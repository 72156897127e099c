"""A new SQL function: CBRT of an attribute, which DuckDB computes at every value of the domain."""

PARTS = frozenset({"this"})
