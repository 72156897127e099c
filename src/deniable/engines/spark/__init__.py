"""The same collections and questions on a Spark cluster."""
