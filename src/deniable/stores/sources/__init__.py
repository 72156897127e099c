"""Where the values of a stream come from: files by their endings, and pipes. One file per kind, listed in `readers.py`.

In: paths and pipes. Out: a `Batch` after the other. `DurablePublisher` publishes them.
"""
