"""The collector's store: reports that devices sent, each kept once, on disk before anybody is told so.

In: `Upload` values, checked before they come here. Out: what became of each, and the reports in the order of user ids.
The service adds, engines read. Nothing here knows HTTP, tokens or clocks.
"""
