"""Streams without trust (ToPL): the device's client and report, and the server that adds reports up.

In: one value on a device; reports at the server. Out: 16 bytes; a threshold and unbiased estimates.
`stream_client`, `stream_protocol` and `stream_report` need the standard library only.
"""
