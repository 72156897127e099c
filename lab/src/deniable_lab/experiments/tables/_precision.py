"""How well the numbers of a page are known, from the standard errors in its CSV."""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats
from deniable_lab.experiments.harness import Rows


def relative_errors(rows: Rows) -> Floats:
    """Standard errors over their means, where both say something."""
    known = (rows.means > 0) & np.isfinite(rows.stderrs)
    return np.asarray(rows.stderrs[known] / rows.means[known])


def about_precision(rows: Rows, stated: str = "stated", measured: str = "NMSE") -> str:
    """A sentence on stated and measured mean squares: how far another run would be from this one."""
    promised, seen = (relative_errors(rows.of(quantity)) for quantity in (stated, measured))
    return (
        f"Mean squares that answers state have a relative standard error of {np.median(promised):.1%} in the median of "
        f"all cells\nand {np.quantile(promised, 0.9):.1%} in nine of ten; measured ones of {np.median(seen):.0%} and "
        f"{np.quantile(seen, 0.9):.0%}."
    )
