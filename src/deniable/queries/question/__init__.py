"""A checked question: disjoint conditions, moments, and formulas of moments. Frozen values and no text.

In: what parsing recognised. Out: what planning, engines and answers read.
"""
