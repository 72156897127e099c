"""Assigned coins: the view and the hash seed of a report as a public function of the user, so that nobody chooses them.

In: a specification, a table, a user, a slot, and a round where rounds have coins of their own. Out: three numbers of 64
bits, on a device with the standard library, for many reports in compiled loops. Clients draw from them, and servers
refuse reports that do not match them. Nothing here depends on data.
"""
