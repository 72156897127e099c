"""Question → plan: the columns of each table, how they are multiplied and added, and the weights of all tables.

In: a `Question` and a `Collection`. Out: a frozen `Plan` that prints, which engines compute.
"""
