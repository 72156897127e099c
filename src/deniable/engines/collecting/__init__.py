"""From rows and device lines to reports: read in the order of user ids, randomise batch by batch, write.

In: frames, files, or lines that devices sent. Out: `Reports` in memory or a folder of them. `Collection.perturb`
and `gather` call it.
"""
