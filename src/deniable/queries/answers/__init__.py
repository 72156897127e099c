"""Moments → answers: values, standard errors, intervals, notes.

In: what an engine measured for a plan. Out: a `Result` that prints, plots and exports. The database calls it.
"""
