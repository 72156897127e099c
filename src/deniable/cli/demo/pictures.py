"""The pictures of the demonstration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from deniable.arrays import Integers
from deniable.cli.demo import meters, shop
from deniable.errors import MissingExtra
from deniable.figure import INK, SOFT, TREND, TRUTH, new_figure, require_plotting, save, tidy
from deniable.plotting.stream_plot import draw as draw_stream
from deniable.queries.answers.answer_plot import draw

DPI = 130
_COLOURS = (INK, SOFT, TREND)


def draw_all(
    folder: Path,
    answered: Sequence[shop.AnsweredQuestion],
    orders: Integers,
    sent: Integers,
    published: meters.Published,
    watts: Integers,
) -> dict[str, Path]:
    """Draw everything, by name; nothing if matplotlib is not installed."""
    try:
        require_plotting()
    except MissingExtra:
        return {}
    paths = {name: folder / f"{name}.png" for name in ("ages", "weeks", "change", "attack", "stream")}
    ages, weeks = answered[0], next(answer for answer in answered if "round" in answer.result.groups)
    change = answered[-1]
    draw(ages.result, paths["ages"], truth=ages.truth, dpi=DPI)
    _draw_weeks(weeks, paths["weeks"])
    draw(change.result, paths["change"], truth=change.truth, dpi=DPI)
    _draw_attack(orders, sent, paths["attack"])
    draw_stream(published.released, paths["stream"], truth=watts, unit="readings, watts", dpi=DPI)
    return paths


def _draw_weeks(answer: shop.AnsweredQuestion, path: Path) -> None:
    """Draw the level of each group by week, with its interval and the truth."""
    figure = new_figure(6.5, 3.6)
    axis = figure.subplots()
    (name, estimates), groups = next(iter(answer.result.answers.items())), answer.result.groups
    labels = groups["category"]
    for offset, (label, colour) in enumerate(zip(shop.ORDER_CATEGORIES, _COLOURS, strict=True)):
        rows = [row for row, value in enumerate(labels) if value == label]
        at = [groups["round"][row] + 0.06 * (offset - 1) for row in rows]
        values = [estimates[row].value for row in rows]
        reach = [estimates[row].interval[1] - estimates[row].value for row in rows]
        axis.errorbar(at, values, yerr=reach, fmt="o-", ms=4, lw=1.4, capsize=3, color=colour, label=label)
        truth = [answer.truth[name][row] for row in rows]
        axis.plot(at, truth, "_", ms=14, mew=2, color=TRUTH, label="truth" if offset == 0 else None)
    axis.set_xticks(range(1, shop.WEEKS + 1), [f"week {week}" for week in range(1, shop.WEEKS + 1)])
    axis.set_ylabel(name)
    tidy(axis)
    axis.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.14))
    save(figure, path, dpi=DPI)


def _draw_attack(orders: Integers, sent: Integers, path: Path) -> None:
    """Draw the reports that an attacker sees against the orders he wants to know."""
    figure = new_figure(6, 3.6)
    axis = figure.subplots()
    counts = np.arange(orders.max() + 1)
    seen = [sent[orders == count].mean() if (orders == count).any() else math.nan for count in counts]
    axis.plot(counts, counts, "s--", color=TRUTH, label="one report per order: the number is known")
    axis.plot(counts, seen, "o-", color=INK, label="deniable: one report per person")
    tidy(axis)
    axis.set_xlabel("orders a person has")
    axis.set_ylabel("reports she sends")
    axis.legend(frameon=False)
    save(figure, path, dpi=DPI)
