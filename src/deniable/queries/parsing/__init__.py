"""SQL text → question. A query is let through because each node of it was recognised.

In: text, a collection and public dimension tables. Out: a `Question`, or a refusal that names the place in the
text. `sql.parse` is the door; a new SQL function goes into `domain_functions.py` or `aggregates.py`, and its node
into `grammar.py`.
"""
