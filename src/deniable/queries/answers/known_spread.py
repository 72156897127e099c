"""Covariances of moments less what people are worth differently, where the question adds that up.

See `planning/product_moments.py` for why it is no error, and how it is estimated without bias.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from deniable.arrays import Floats
from deniable.queries.question.question import NO_ROW

Products = Mapping[tuple[int, int], int]


def without_spread(
    products: Products, sums: Floats, squares: Floats, users: Floats, covariances: Floats, used: list[int]
) -> Floats:
    """Covariances without what people are worth differently, as far as that is known; `squares` are Σ W·Wᵀ.

    They are Σ W·Wᵀ less a lower bound of Σ f·fᵀ. As much more of it as is clear is subtracted: what the estimate of
    Σ f·fᵀ is above the bound, times the share of it that its standard errors leave.
    """
    if any((first, second) not in products for first in used for second in used):
        return covariances
    numbers = np.array([[products[first, second] for second in used] for first in used])
    mine = np.ix_(range(len(sums)), used, used)
    excess = np.where(numbers == NO_ROW, 0.0, sums[:, numbers]) - (squares - covariances)[mine]
    own = np.diagonal(numbers)
    spread = np.square(sums[:, own]) / np.maximum(users, 1.0)[:, None]
    errors = np.sqrt(np.maximum(squares[:, own, own] - spread, 0.0))
    beyond, scale = np.einsum("gii->gi", excess), np.einsum("gii->gi", squares[mine])
    known = np.clip(np.divide(beyond - errors, beyond, out=np.zeros_like(beyond), where=beyond > 0), 0.0, 1.0)
    # Of those who count the bound is what they add up to: there is nothing beyond it but rounding.
    share = np.where(np.abs(beyond) > 1e-9 * scale, known, 1.0).min(axis=1)
    less = covariances[mine] - share[:, None, None] * excess
    valid = np.linalg.eigvalsh(less)[:, 0] >= -1e-9 * scale.max(axis=1)
    result = covariances.copy()
    result[mine] = np.where(valid[:, None, None], less, covariances[mine])
    return result
