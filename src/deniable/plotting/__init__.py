"""Plots: the only room that imports matplotlib, an extra.

In: answers and released streams. Out: figures.
"""
