"""The same collections and questions on a Spark cluster.

In: folders, DataFrames or catalog tables. Out: what the local rooms give, computed by the same kernel on executors.
Imported only when a session is handed in.
"""
