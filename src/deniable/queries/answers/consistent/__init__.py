"""Answers from one possible table of cells: nothing negative, all views in agreement (`postprocess="consistent"`).

In: measured frequencies of cells. Out: answers with less noise, and bias.
"""
