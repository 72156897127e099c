"""SQL text → question. A query is let through because each node of it was recognised.

In: text, a collection and public dimension tables. Out: a `Question`, or a refusal that names the place in the
text. `sql.parse` is the door, and `sql.PASSES` lists its steps. A new SQL function is one entry in `functions.py`.
"""
