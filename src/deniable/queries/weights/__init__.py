"""Weights on cells that reproduce a function of the rows: on trees, on axes, on products of axes.

In: functions of attributes and a design. Out: a `TablePlan`, what every report of a table contributes. Planning
calls it.
"""
