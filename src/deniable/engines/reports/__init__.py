"""Folders of reports → reports that can be believed, in memory or in files, block by block of whole users.

In: a folder. Out: stores of validated reports, and refusals by reason. `connect` calls it.
"""
