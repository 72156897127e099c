"""People of one place by a sensitive attribute: answers next to the truth, errors by group  [XDW20, Figs. 11, 12]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.table_data import CALIFORNIA, FILING
from deniable_lab.experiments.tables._errors import COUNT, NOTHING, SUM, Ask, Release, plain, told, truths
from deniable_lab.experiments.tables._grids import about_grid
from deniable_lab.experiments.tables._households import ASSUMED, METHODS, REGION, ROWS, name_of, study
from deniable_lab.experiments.tables._lines import LINES
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILON = 5.0
QUESTION = (
    f"SELECT status, COUNT(*) AS {COUNT}, SUM(income) AS {SUM} FROM homes JOIN people USING (uid) "  # noqa: S608
    f"WHERE state = {CALIFORNIA} GROUP BY status"
)
AGGREGATES = (COUNT, SUM)


def settings(data: Data, quick: bool) -> list[Setting]:
    """One sample, one ε."""
    return [{"data": name_of(data), "rows": 1_000_000 if quick else ROWS[REGION], "epsilon": EPSILON}]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """The answers of one release, next to the truth."""
    made = study(REGION, int(setting["rows"]), data)
    release = Release(made, float(setting["epsilon"]), seed)
    truth = {row[0]: dict(zip(AGGREGATES, row[1:], strict=True)) for row in plain(made, QUESTION)}
    whole = dict(zip(AGGREGATES, truths(made, [Ask("income", {})])[0], strict=False))
    measured: list[tuple[Setting, dict[str, float]]] = [
        (
            {"group": group, "method": NOTHING, "aggregate": aggregate},
            {"NMSE": (float(truth[group][aggregate]) / float(whole[aggregate])) ** 2},
        )
        for group in FILING
        for aggregate in AGGREGATES
    ]
    for line in (LINES[name] for name in METHODS):
        answer = told(line, release.reports(line, "income", (QUESTION,))[1], QUESTION)
        for index, (group,) in enumerate(answer.keys):
            for aggregate in AGGREGATES:
                value, stated = float(answer.values[aggregate][index]), float(answer.errors[aggregate][index])
                right, scale = float(truth[group][aggregate]), float(whole[aggregate])
                numbers = {"answer": value, "truth": right}
                numbers |= {"NMSE": ((value - right) / scale) ** 2, "stated": (stated / scale) ** 2}
                measured.append(({"group": group, "method": line.name, "aggregate": aggregate}, numbers))
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """Answers of all releases above, errors below."""
    grid = figure.subplots(2, len(AGGREGATES), sharex=True)
    for (above, below), aggregate in zip(grid.T, AGGREGATES, strict=True):
        part = rows.where(aggregate=aggregate)
        truth = part.of("truth").where(method="ours").means
        above.bar(range(len(FILING)), truth, color="0.85", width=0.8, label="truth")
        for number, method in enumerate(METHODS):
            line, answers = LINES[method], part.of("answer").where(method=method)
            at = np.arange(len(FILING)) + 0.2 * (number - 1.5)
            spread = answers.stderrs * np.sqrt([row.repetitions for row in answers])
            style = {"color": line.colour, "marker": line.marker, "fillstyle": "none" if line.paper else "full"}
            above.errorbar(at, answers.means, spread, linestyle="none", elinewidth=0.8, label=method, **style)
            errors, stated = (part.of(name).where(method=method).means for name in ("NMSE", "stated"))
            below.plot(at, errors, linestyle="none", **style)
            below.plot(at, stated, color=line.colour, linewidth=1.0, alpha=0.7)
        above.set_title(aggregate if aggregate == COUNT else "SUM of income, in steps of 2,000 dollars")
        above.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
        below.set_yscale("log")
        below.set_xticks(range(len(FILING)), FILING)
    grid[0, 0].set_ylabel("answer ± sd of releases")
    grid[1, 0].set_ylabel("NMSE")
    add_legend(figure, [grid[0, 0]])


def describe(rows: Rows) -> str:
    """Errors by group."""
    lines = []
    for method in METHODS:
        for aggregate in AGGREGATES:
            part = rows.where(method=method, aggregate=aggregate)
            cells = [
                f"{part.of('NMSE').only(group=group).mean:.1e} ({part.of('stated').only(group=group).mean:.1e})"
                for group in FILING
            ]
            lines.append([f"{method}, {aggregate}", *cells])

    def stated(method: str, aggregate: str) -> Any:
        return rows.of("stated").where(method=method, aggregate=aggregate).means

    spread = [
        stated(method, aggregate).max() / stated(method, aggregate).min()
        for method in METHODS
        for aggregate in AGGREGATES
    ]
    gains = [
        np.mean(stated("HIO-JOIN-RDC", aggregate)) / np.mean(stated("ours", aggregate)) for aggregate in AGGREGATES
    ]
    rdc = [
        np.mean(stated("HIO-JOIN", aggregate)) / np.mean(stated("HIO-JOIN-RDC", aggregate)) for aggregate in AGGREGATES
    ]
    truth = rows.of("truth").where(method="ours", aggregate=COUNT).means
    shares = ", ".join(f"{name} {share:.0%}" for name, share in zip(FILING, truth / truth.sum(), strict=True))
    return f"""Errors by group:

{markdown_table(["NMSE measured (stated)", *FILING], lines)}

*Errors of all groups are very close, so that large groups are estimated best* (the paper prints no numbers): the
largest stated NMSE is {min(spread):.2g} to {max(spread):.2g} times the smallest, for groups of {shares}. HIO-JOIN-RDC
is {rdc[0]:.2g} times better than HIO-JOIN for COUNT and {rdc[1]:.2g} times for SUM: a category is also everything minus
the others. **Ours** has an NMSE {gains[0]:.2g} times smaller than HIO-JOIN-RDC for COUNT and {gains[1]:.2g} times for
SUM.

{about_grid(rows, over=("group",))} Squares are
averaged over groups.

{ASSUMED}"""


EXPERIMENT = Experiment(
    "People of one place by group",
    "[XDW20, Figs. 11 and 12]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(4, 15),
    size=(7.0, 4.4),
    setting=(
        "COUNT(*) and SUM(income) of the people of one place by filing status, a sensitive attribute; "
        f"ε = {EPSILON:g}, τ_max = 10, τ = 1; 7.56 million people, with --quick one million."
    ),
)
