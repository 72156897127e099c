"""Averages of hours under three conditions: estimates and their spread, next to those printed  [XDW20, Table 2].

The paper's rows (3 million census records) are not public in that form. Rows of the same shape are drawn from the
American Time Use Survey if the data folder has its tables, otherwise from a rough model of them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.collection import Collection
from deniable.database import connect
from deniable.queries.question.formula import evaluate, gradient_at
from deniable.randomness import SeededSource
from deniable.tables.schema.attributes import Categorical, Ordinal, Table
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.parquet_files import read_columns
from deniable_lab.experiments.tables._errors import moments_told, plan_of, stated_spread
from deniable_lab.experiments.tables._lines import LINES, OURS
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

MARITAL = ("married", "divorced", "separated", "widowed", "single")
PEOPLE = Table("people", age=Ordinal(1, 95, summed=False), marital=Categorical(*MARITAL), hours=Ordinal(0, 99))
QUESTIONS = {
    "Q1": "SELECT AVG(hours) FROM people WHERE marital = 'married'",
    "Q2": "SELECT AVG(hours) FROM people WHERE marital = 'married' AND age BETWEEN 31 AND 70",
    "Q3": "SELECT AVG(hours) FROM people WHERE marital = 'single' AND age BETWEEN 31 AND 50",
}
METHODS = ("HIO", "AHIO", "EHIO", "AHIO-RDC", *OURS)
EPSILONS = (0.5, 1.0, 2.0, 5.0)
PRINTED = {
    ("Q1", 0.5): (20.0, 5.15, 4.07, 5.15), ("Q1", 1.0): (6.46, 2.82, 2.06, 2.82),
    ("Q1", 2.0): (4.07, 1.2, 1.05, 1.2), ("Q1", 5.0): (0.69, 0.75, 0.27, 0.75),
    ("Q2", 0.5): (47.2, 12.1, 18.7, 10.4), ("Q2", 1.0): (28.8, 5.79, 7.2, 4.71),
    ("Q2", 2.0): (10.1, 3.43, 2.89, 1.82), ("Q2", 5.0): (3.36, 1.25, 0.7, 0.69),
    ("Q3", 0.5): (321.0, 133.0, 243.0, 98.2), ("Q3", 1.0): (122.0, 67.1, 36.7, 25.0),
    ("Q3", 2.0): (73.6, 20.3, 14.6, 9.12), ("Q3", 5.0): (8.48, 4.91, 1.76, 1.74),
}  # fmt: skip
"""Standard deviations of ten releases [XDW20, Table 2]: HIO, AHIO, EHIO, AHIO-RDC."""
PAPER_ROWS = 3_000_000
GRID = "grid"


@lru_cache(maxsize=2)
def people(rows: int, folder: Path | None) -> pa.Table:
    """Rows of the survey, drawn with replacement; or of a rough model of it."""
    random = np.random.default_rng(1)
    if folder is None:
        age = np.clip(random.normal(47, 18, rows), 15, 85).astype(np.int64)
        weights = np.array([0.51, 0.13, 0.03, 0.09, 0.24])
        marital = random.choice(len(MARITAL), rows, p=weights)
        hours = np.where(random.random(rows) < 0.4, 0, np.clip(random.normal(40, 10, rows), 1, 99)).astype(np.int64)
    else:
        asked = read_columns(folder / "atus_demographics.parquet", "age", "marital")
        work = read_columns(folder / "atus_work.parquet", "work_hrs_week")
        picked = random.integers(0, asked.num_rows, rows)
        age, marital = (asked[name].to_numpy().astype(np.int64)[picked] for name in ("age", "marital"))
        hours = np.minimum(work["work_hrs_week"].to_numpy().astype(np.int64)[picked], 99)
    names = pa.array(MARITAL).take(pa.array(marital))
    return pa.table({"uid": np.arange(rows), "age": age, "marital": names, "hours": hours})


@lru_cache(maxsize=2)
def true_moments(rows: int, folder: Path | None) -> dict[tuple[bool, str], Any]:
    """The moments of each question without noise, measured from zero (as the paper does) and from the middle."""
    exact = Collection(PEOPLE, epsilon=float("inf"), design="mg")
    database = connect(exact.perturb(people=people(rows, folder), source=SeededSource(0), simulation=True))
    return {
        (line.paper, name): database.engine.moments(plan_of(line, exact, text), {}).sums
        for line in (LINES["AHIO"], LINES["ours"])
        for name, text in QUESTIONS.items()
    }


def answers(
    method: str, epsilon: float, seed: int, rows: int, folder: Path | None
) -> dict[str, tuple[float, float, float]]:
    """Value, stated variance and true value of each question in one release.

    The variance, with what a grid assumes, is that of the quotient at the true moments: a noisy denominator would
    spoil it.
    """
    line, truth = LINES[method], true_moments(rows, folder)
    collection = line.collect((PEOPLE,), epsilon, rows, tuple(QUESTIONS.values()))
    frame = people(rows, folder)
    database = connect(collection.perturb(people=frame, source=SeededSource(seed), simulation=True))
    made = {}
    for name, text in QUESTIONS.items():
        plan, moments = moments_told(line, database, text)
        formula, right = plan.question.outputs[0].formula, truth[line.paper, name]
        spread, slope = stated_spread(plan, moments), gradient_at(formula, right)
        value, true = (evaluate(formula, sums, np.zeros_like(spread)).value[0] for sums in (moments.sums, right))
        made[name] = float(value), float(np.einsum("gi,gij,gj->g", slope, spread, slope)[0]), float(true)
    return made


def survey(data: Data) -> Path | None:
    """The folder of the survey's tables, if they are there."""
    files = [data.file("tables", f"atus_{name}") for name in ("demographics", "work")]
    return files[0].parent if files[0] and files[1] else None


def settings(data: Data, quick: bool) -> list[Setting]:
    """ε by ε."""
    name = "ATUS" if survey(data) else "ATUS stand-in"
    return [{"data": name, "rows": 300_000 if quick else PAPER_ROWS, "epsilon": epsilon} for epsilon in EPSILONS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """The answers of one release. Bias does not shrink with √n: a grid has the paper's number of rows in any case."""
    folder = survey(data)
    measured: list[tuple[Setting, dict[str, float]]] = []
    for method in METHODS:
        rows = PAPER_ROWS if method == GRID else int(setting["rows"])
        for name, (value, variance, truth) in answers(method, float(setting["epsilon"]), seed, rows, folder).items():
            numbers = {"answer": value, "variance": variance, "square": (value - truth) ** 2}
            measured.append(({"rows": rows, "method": method, "question": name}, numbers))
    return measured


def stderrs(rows: Rows, method: str, question: str) -> list[float]:
    """Root mean square of the errors that releases state, for the paper's number of rows."""
    part = rows.of("variance").where(method=method, question=question)
    return [float(np.sqrt(row.mean * row["rows"] / PAPER_ROWS)) for row in part]


def measured_errors(rows: Rows, question: str) -> list[float]:
    """Root mean square of the grid's errors."""
    return [float(np.sqrt(row.mean)) for row in rows.of("square").where(method=GRID, question=question)]


def _pairs(others: list[float], rows: Rows, question: str) -> list[tuple[float, float]]:
    """Some standard errors by ε, each with ours."""
    return list(zip(others, stderrs(rows, "ours", question), strict=True))


def plot(rows: Rows, figure: Any) -> None:
    """Standard errors by ε: ours as lines, those printed as marks."""
    grid = figure.subplots(1, len(QUESTIONS), sharey=True)
    for axes, question in zip(grid, QUESTIONS, strict=True):
        for number, method in enumerate(METHODS):
            line = LINES[method]
            axes.plot(EPSILONS, stderrs(rows, method, question), color=line.colour, marker=".", label=method)
            if line.paper:
                printed = [PRINTED[question, epsilon][number] for epsilon in EPSILONS]
                style = {"color": line.colour, "marker": line.marker, "fillstyle": "none", "linestyle": "none"}
                axes.plot(EPSILONS, printed, label=f"{method}, printed", **style)
        style = {"color": LINES[GRID].colour, "marker": LINES[GRID].marker, "linestyle": "none"}
        axes.plot(EPSILONS, measured_errors(rows, question), label="grid, measured", **style)
        axes.set(xscale="log", yscale="log", xlabel="ε", title=question)
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
    grid[0].set_ylabel("error of AVG(hours)")
    add_legend(figure, grid, columns=5)


def describe(rows: Rows) -> str:
    """Every cell, printed next to ours."""
    lines = []
    for question in QUESTIONS:
        for number, method in enumerate(METHODS):
            own = stderrs(rows, method, question)
            cells = [
                f"{error:.3g} ({PRINTED[question, epsilon][number]:.3g})" if LINES[method].paper else f"**{error:.3g}**"
                for epsilon, error in zip(EPSILONS, own, strict=True)
            ]
            lines.append([f"{question}, {method}", *cells])
        lines.append([f"{question}, grid, measured", *(f"{error:.3g}" for error in measured_errors(rows, question))])
    over_rdc = [a / b for name in QUESTIONS for a, b in _pairs(stderrs(rows, "AHIO-RDC", name), rows, name)]
    over_printed = [
        a / b
        for name in QUESTIONS
        for a, b in _pairs([min(PRINTED[name, epsilon]) for epsilon in EPSILONS], rows, name)
    ]
    printed_ratio = [
        PRINTED[name, epsilon][number] / own
        for name in QUESTIONS
        for number, method in enumerate(METHODS)
        if LINES[method].paper
        for epsilon, own in zip(EPSILONS, stderrs(rows, method, name), strict=True)
    ]
    spread = [
        answer.stderr**2 * answer.repetitions / variance.mean
        for answer, variance in zip(rows.of("answer"), rows.of("variance"), strict=True)
        if variance.mean < 25 and variance["method"] != GRID
    ]
    ahead = [a / b for name in QUESTIONS for b, a in _pairs(measured_errors(rows, name), rows, name)]
    honest = [
        a / b for name in QUESTIONS for a, b in zip(measured_errors(rows, name), stderrs(rows, GRID, name), strict=True)
    ]
    biased = [
        1 - answer.stderr**2 * (answer.repetitions - 1) / square.mean
        for name in ("Q1", "Q2")
        for answer, square in zip(
            *(rows.of(quantity).where(method=GRID, question=name) for quantity in ("answer", "square")), strict=True
        )
        if answer["epsilon"] <= 2
    ]
    cells = [f"{name} at ε = {epsilon:g}" for name in QUESTIONS for epsilon in EPSILONS]
    behind = ", ".join(cell for cell, ratio in zip(cells, ahead, strict=True) if ratio < 1) or "no cell"
    scaled = "" if rows.rows[0]["rows"] == PAPER_ROWS else "scaled by √n to 3 million rows, "
    return f"""Every cell, printed values in brackets:

{markdown_table(["standard error (printed)", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)], lines)}

Standard errors are the root mean square of those that the releases state, {scaled}next to the printed standard
deviations of ten releases, each of which is known to about a quarter. The printed ones are between
{min(printed_ratio):.2g} and {max(printed_ratio):.2g} times what the same method has here (median
{np.median(printed_ratio):.2g}). Where an answer is clear, the variance of the releases themselves is
{np.mean(spread):.2f} times the stated one on average.

**Ours** has {min(over_rdc):.2g} to {max(over_rdc):.2g} times smaller standard errors than AHIO-RDC in the same run,
and {min(over_printed):.2g} to {max(over_printed):.2g} times smaller ones than the best printed in each cell. AHIO-RDC
equals AHIO for Q1 in the paper, which decomposes ranges only; here a category is also everything minus the others.

**The grid** is fitted to these three questions before anything is collected and assumes smooth data, so that it is
biased; it is measured with 3 million rows itself. Our standard errors are {min(ahead):.2g} to {max(ahead):.2g}
times its measured errors (median {np.median(ahead):.2g}); ours is better in {behind}. Measured errors of the grid are
{min(honest):.2g} to {max(honest):.2g} times what it states, noise and assumption together (median
{np.median(honest):.2g}). In Q1 and Q2 up to ε = 2 bias is {np.mean(biased):.0%} of their mean square: hours are not
smooth. Many people work exactly 0 or 40 of them, and cells of 12 or 25 hours do not show where in a cell its rows are.

Not reproduced: the true answers (26.62, 29.98, 30.82 hours), because the rows differ."""


EXPERIMENT = Experiment(
    "Average hours under three conditions",
    "[XDW20, Table 2]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(4, 10),
    size=(7.5, 3.6),
    setting=(
        "Q1: married; Q2: married, age 31 to 70; Q3: single, age 31 to 50. Age has 95 values, marital status 5, "
        "hours 100. 3 million rows, with --quick 300,000 (3 million for the grid)."
    ),
)
