"""Expected products of biases of several groups of users, added up.

Biases of two groups may go the same way, so model errors add as they are, not their squares: for any c > 0 and biases
b_1, b_2

    (b_1 + b_2)·(b_1 + b_2)ᵀ ⪯ (1 + c)·b_1·b_1ᵀ + (1 + 1/c)·b_2·b_2ᵀ ,

and with c the ratio of their sizes this is tight where one moment prevails.
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats


def products_of_both(left: Floats, right: Floats) -> Floats:
    """A bound for products of sums of two biases."""
    sizes = [np.sqrt(np.maximum(np.einsum("gii->g", each), 0.0)) for each in (left, right)]
    both = (sizes[0] > 0) & (sizes[1] > 0)
    c = np.where(both, sizes[1] / np.where(both, sizes[0], 1.0), 0.0)[:, None, None]
    inverse = np.divide(1.0, c, out=np.zeros_like(c), where=c > 0)
    return np.asarray((1 + c) * left + (1 + inverse) * right)
