"""A stream in a folder: what is about to be published, what was published, and everything needed to go on.

In: batches of values. Out: private values in append-only segments, which anybody may read while the stream is live.
`DurablePublisher` writes a folder, `StoredStream` reads it.
"""
