"""Errors before any data: predictions from a plan, forecasts, comparisons of designs, and fitted collections.

In: a collection, questions and a number of users. Out: predicted errors with their causes, or a specification.
"""
