"""What a fitted grid gains and loses in a figure. It is biased, so that measured errors count, not stated ones."""

from __future__ import annotations

from collections.abc import Collection as Several

import numpy as np

from deniable.arrays import Floats
from deniable_lab.experiments.harness import Rows
from deniable_lab.experiments.tables._errors import COUNT, NOTHING, SUM

GRID, OTHER = "grid", "ours"
INFORMATIVE = 0.25
"""An answer is informative if its NMSE is below this share of that of saying 0: its error is then half the truth."""


def about_grid(rows: Rows, over: Several[str] = ()) -> str:
    """How often the grid is informative, how far ahead it is then, and whether its stated errors are right.

    A cell is one setting of a figure; squares of errors are averaged over the columns in `over` beforehand.
    """
    by_aggregate = []
    for aggregate in (COUNT, SUM):
        part = rows.where(aggregate=aggregate)
        seen = [_cells(part.of("NMSE").where(method=name), over) for name in (GRID, OTHER, NOTHING)]
        by_aggregate.append([*seen, _cells(part.of("stated").where(method=GRID), over)])
    grid, other, nothing, stated = (np.concatenate(parts) for parts in zip(*by_aggregate, strict=True))
    clear = grid < INFORMATIVE * nothing
    ahead = " and ".join(
        f"{_spread((theirs / mine)[mine < INFORMATIVE * zero])} times smaller for {aggregate}"
        for aggregate, (mine, theirs, zero, _) in zip((COUNT, SUM), by_aggregate, strict=True)
        if (mine < INFORMATIVE * zero).any()
    )
    behind = int((grid > other).sum())
    worse = f" Ours is better in {behind} of all cells." if behind else ""
    return f"""**The grid** is fitted to these questions before anything is collected, and it assumes smooth data; so
it is biased. Ours needs neither. The grid is informative in {clear.sum()} of {clear.size} cells (measured errors below
half of those of saying 0 to every question), ours in {(other < INFORMATIVE * nothing).sum()}. Where the grid is, its
measured NMSE, against ours, is {ahead or "nothing to speak of"}
(median, and least to most).{worse}
Over all cells it is {_spread(grid / stated)} times what the grid states, noise and assumption together."""


def _cells(rows: Rows, over: Several[str]) -> Floats:
    cells: dict[tuple[tuple[str, object], ...], list[float]] = {}
    for row in rows:
        key = tuple(sorted((name, value) for name, value in row.setting.items() if name not in {*over, "method"}))
        cells.setdefault(key, []).append(row.mean)
    return np.array([np.mean(cells[key]) for key in sorted(cells, key=repr)])


def _spread(values: Floats) -> str:
    if values.size == 1:
        return short(values[0])
    return f"{short(np.median(values))} ({short(values.min())} to {short(values.max())})"


def short(number: float) -> str:
    """Two digits, and no powers of ten for what is large."""
    return f"{number:.2g}" if number < 100 else f"{float(f'{number:.2g}'):,.0f}"
