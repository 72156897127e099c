"""The collector: HTTP in front of a store.

In: requests of devices, analysts and operators. Out: reports in the store, answers, health and metrics. The command
`deniable serve` starts it. Everything is decoded and checked at the door; what is behind it trusts its types. Nothing
here writes an id, a token or a report to a log line, a metric or an error.
"""
