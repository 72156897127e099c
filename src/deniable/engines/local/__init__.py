"""The local engine: a plan and reports on this machine → moments.

In: a `Plan` and stores. Out: `Moments`. The database calls it.
"""
