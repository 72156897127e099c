"""The bias to expect of an answer, if it is known how many rows match.

A grid's prior says how far off answers are that assume something: on average over all data that it thinks possible. Who
says how many rows match says more. Reports that mostly show noise leave an answer near what was expected before there
were any, and the difference to the truth is then known: b̂, up to the roughness s of what was said. With the prior's
variance M of the bias, or b̂² − s² if that is more, which contradicts the prior, the squared bias is expected to be

    (b̂·M/(M + s²))² + M·s²/(M + s²) .

Only counts are known so well. How large values are where rows match is not, so that sums only ever get a larger bias.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from deniable.arrays import Floats

SAID_ROUGHLY = 0.1
"""The error of a share of rows that somebody knows to one digit, relative to it."""
GUESSED_SIZE = 0.5
"""The error of a sum over these rows, relative to it, if values are taken to be as large as elsewhere."""


def with_told_bias(model: Floats, answered: Floats, truth: Floats, counts: Iterable[int]) -> Floats:
    """Expected products of biases (groups × moments × moments), if moments are expected to be answered like this.

    >>> model = np.array([[[100.0**2]]])
    >>> bool(with_told_bias(model, np.array([[20.0]]), np.array([[95.0]]), [0])[0, 0, 0] < 80**2)
    True
    """
    prior = np.einsum("gii->gi", model)
    counted = np.isin(np.arange(prior.shape[1]), list(counts))
    rough = np.square(np.where(counted, SAID_ROUGHLY, GUESSED_SIZE) * truth)
    bias = np.square(answered - truth)
    variance = np.maximum(prior, bias - rough)
    kept = np.divide(variance, variance + rough, out=np.zeros_like(variance), where=variance > 0)
    told = np.where(counted, bias * kept**2 + kept * rough, variance)
    scale = np.sqrt(np.divide(told, prior, out=np.zeros_like(prior), where=prior > 0))
    return np.asarray(model * scale[:, :, None] * scale[:, None, :])
