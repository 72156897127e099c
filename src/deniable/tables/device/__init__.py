"""The client on one device: truncate, round, randomise, remember. Standard library only.

In: the rows of one user. Out: a number of reports that follows from the specification alone, the same bytes when
asked again. Apps call it through `deniable.client`.
"""
