"""The local engine: a plan and reports on this machine → moments.

In: a folder of reports, then plans. Out: `Moments`. The database calls it.
"""
