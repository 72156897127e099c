"""A released stream: private values, and the sum or mean over any window with its standard error.

In: what a publisher or a server published. Out: estimates. Nothing here sees a value that was not published.
"""
