"""The client for arrays of users: the law of `device`, without Python per row.

In: columns of whole users. Out: columns of reports. Engines call it.
"""
