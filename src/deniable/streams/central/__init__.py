"""Streams with a trusted server: threshold, perturber, smoother, and the publishers made of them (ToPS and baselines).

In: values, one by one or many. Out: private values, one for one.
"""
