"""Pictures: the one room that asks for matplotlib, an extra.

In: answers and released streams. Out: figures.
"""
