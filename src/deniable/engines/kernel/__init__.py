"""The compiled loops: what every report contributes, what users add up to, which cells reports support.

In: arrays of reports and the sparse arrays of a plan. Out: sums. Every engine calls the same loops.
"""
