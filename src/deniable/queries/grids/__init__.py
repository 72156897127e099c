"""Weights on the cells of a grid by least error, the prior they assume, and what reports say of that prior.

In: columns that are asked, views of a grid, the number of users. Out: a `TablePlan` with its bias, or views chosen
for a workload.
"""
