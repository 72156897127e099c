"""One report and how it travels; many reports as columns, and which of them can be believed.

In: bytes, lines of JSON or Arrow tables. Out: checked reports, and counts of refusals by reason. Engines call it.
"""
