"""A promise over a lifetime: dividing people beats dividing ε, and sticky answers make changes precise."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import deniable as dn
from deniable.queries.forecasts.round_forecast import round_errors
from deniable.tables.schema.rounds import FRESH, MEMOISED, ROTATING
from deniable_lab.experiments.drawn_rounds import CHANGING, collection_of, database_of, drawn_lives
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.ratios import ratio
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILON, USERS = 2.0, 4_000
COUNTS = (2, 4, 8)
LEVEL, CHANGE = "level", "change"
DIVIDED = "everybody, ε divided"
WAYS = {LEVEL: (ROTATING, DIVIDED), CHANGE: (MEMOISED, FRESH)}
STYLES = {ROTATING: "o-C0", DIVIDED: "s-C1", MEMOISED: "o-C0", FRESH: "s-C1"}
_COUNT = "COUNT(*) FILTER (WHERE age < 30 AND round = {})"


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn, and cheap
    """Ways to spread a promise, by the number of rounds."""
    return [
        {"data": "LIVES", "asked": asked, "mode": mode, "rounds": count}
        for asked, modes in WAYS.items()
        for count in COUNTS
        for mode in modes
    ]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """The answer about the last round, or its difference from the one before."""
    count, mode = int(setting["rounds"]), str(setting["mode"])
    collection = _collection(mode, count)
    lives = drawn_lives(USERS, count, CHANGING, np.random.default_rng(seed))
    young = [float((ages < 30).sum()) for ages in lives]
    asked, truth = _COUNT.format(count), young[-1]
    if setting["asked"] == CHANGE:
        asked, truth = f"{asked} - {_COUNT.format(count - 1)}", young[-1] - young[-2]
    with TemporaryDirectory() as folder:
        database = database_of(collection, lives, seed, Path(folder))
        answer = database.sql(f"SELECT {asked} AS n FROM users").scalar()  # noqa: S608 - ours
    low, high = answer.interval
    return {"MSE": (answer.value - truth) ** 2, "stated": answer.stderr**2, "covered": float(low <= truth <= high)}


def _collection(mode: str, count: int) -> dn.Collection:
    """Rotating and divided rounds keep ε over a lifetime, sticky and fresh ones in each round."""
    return collection_of(FRESH, EPSILON / count, count) if mode == DIVIDED else collection_of(mode, EPSILON, count)


def plot(rows: Rows, figure: Any) -> None:
    """Errors of levels on the left, of changes on the right: points are measured, lines are stated."""
    panels = figure.subplots(1, 2)
    for axes, (asked, part) in zip(panels, rows.split("asked"), strict=True):
        for mode, line in part.split("mode"):
            counts, style = line.of("MSE").column("rounds"), STYLES[mode]
            axes.plot(counts, np.sqrt(line.of("MSE").means), style[0] + style[2:], label=mode)
            axes.plot(counts, np.sqrt(line.of("stated").means), style[1:], linewidth=1.0)
        axes.set_title(f"error of a {asked}")
        axes.set_xscale("log", base=2)
        axes.set_xticks(COUNTS, [str(count) for count in COUNTS])
        axes.set_xlabel("rounds")
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("people")
    add_legend(figure, list(panels), columns=4)


def describe(rows: Rows) -> str:
    """How much is gained."""
    lines = []
    for asked, (better, worse) in WAYS.items():
        for count in COUNTS:
            part = rows.of("MSE").where(asked=asked, rounds=count)
            gained = ratio(part.only(mode=worse), part.only(mode=better))
            covered = rows.of("covered").only(asked=asked, rounds=count, mode=better).mean
            lines.append([f"{asked}: {better} against {worse}", count, gained, f"{covered:.0%}"])
    return f"""How many times smaller the mean squared error is, and how many 95 % intervals hold the truth:

{markdown_table(["", "rounds", "MSE smaller by", "covered"], lines)}

Levels keep ε = {EPSILON:g} over a lifetime either way. Changes spend ε = {EPSILON:g} in every round either way;
memoised answers hide *that* somebody changed less well, which `deniable check` says in numbers. For these settings
the law says {_forecast_gain():.1f}, whatever the number of rounds: the noise of single rounds does not cancel. Where a
lifetime spends the same for people who change alike, fresh rounds have an ever smaller ε,
and memoised ones gain far more."""


def _forecast_gain() -> float:
    """How many times smaller the mean squared error of a sticky change is, by the law."""
    asked = "SELECT COUNT(*) AS n FROM users WHERE age < 30"
    fresh, sticky = (
        next(errors.change for errors in round_errors(_collection(mode, 2), asked, USERS) if errors.mode == mode)
        for mode in (FRESH, MEMOISED)
    )
    return (fresh / sticky) ** 2


EXPERIMENT = Experiment(
    "Rounds",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(60, 200),
    setting=f"COUNT(*) of people under 30 among {USERS:,}, one attribute, design mg.",
)
