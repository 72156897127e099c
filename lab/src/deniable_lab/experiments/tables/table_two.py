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
from scipy.special import stdtrit

from deniable.arrays import Floats
from deniable.collection import Collection
from deniable.database import connect
from deniable.queries.question.formula import evaluate, gradient_at
from deniable.randomness import SeededSource
from deniable.tables.schema.attributes import Categorical, Ordinal, Table
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.parquet_files import read_columns
from deniable_lab.experiments.tables._errors import moments_told, plan_of
from deniable_lab.experiments.tables._lines import LINES, OURS
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.tables._precision import about_precision
from deniable_lab.experiments.writing import markdown_table

MARITAL = ("married", "divorced", "separated", "widowed", "single")
PEOPLE = Table("people", age=Ordinal(1, 95), marital=Categorical(*MARITAL), hours=Ordinal(0, 99))
HOURS_ALONE = Table("people", age=Ordinal(1, 95, summed=False), marital=Categorical(*MARITAL), hours=Ordinal(0, 99))
TABLES = {"age, hours": PEOPLE, "hours": HOURS_ALONE}
"""By the attributes that can be summed: AHIO and EHIO divide users among them. The paper has a group for each
attribute of a table [XDW20, Section 3.3], so the first is closer to it."""
BOTH, ALONE = TABLES
QUESTIONS = {
    "Q1": "SELECT AVG(hours) FROM people WHERE marital = 'married'",
    "Q2": "SELECT AVG(hours) FROM people WHERE marital = 'married' AND age BETWEEN 31 AND 70",
    "Q3": "SELECT AVG(hours) FROM people WHERE marital = 'single' AND age BETWEEN 31 AND 50",
}
METHODS = ("HIO", "AHIO", "EHIO", "AHIO-RDC", *OURS)
GROUPED = ("AHIO", "EHIO", "AHIO-RDC")
BASELINE = "SR-HIO"
"""The paper's second baseline, which its table does not have."""
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
    method: str, epsilon: float, seed: int, rows: int, folder: Path | None, table: Table = PEOPLE
) -> dict[str, tuple[float, float, float]]:
    """Value, stated variance and true value of each question in one release.

    The variance, with what a grid assumes, is that of the quotient at the true moments: a noisy denominator would
    spoil it.
    """
    line, truth = LINES[method], true_moments(rows, folder)
    collection = line.collect((table,), epsilon, rows, tuple(QUESTIONS.values()))
    frame = people(rows, folder)
    database = connect(collection.perturb(people=frame, source=SeededSource(seed), simulation=True))
    made = {}
    for name, text in QUESTIONS.items():
        reported = moments_told(line, database, text)
        formula, right = reported.plan.question.outputs[0].formula, truth[line.paper, name]
        spread, slope, told = reported.spread(), gradient_at(formula, right), reported.moments.sums
        value, true = (evaluate(formula, sums, np.zeros_like(spread)).value[0] for sums in (told, right))
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
    epsilon = float(setting["epsilon"])
    asked = [*((method, BOTH) for method in (*METHODS, BASELINE)), *((method, ALONE) for method in GROUPED)]
    for method, summed in asked:
        rows = PAPER_ROWS if method == GRID else int(setting["rows"])
        told = answers(method, epsilon, seed, rows, folder, TABLES[summed])
        for name, (value, variance, truth) in told.items():
            numbers = {"answer": value, "variance": variance, "square": (value - truth) ** 2}
            measured.append(({"rows": rows, "method": method, "summed": summed, "question": name}, numbers))
    return measured


def stderrs(rows: Rows, method: str, question: str, summed: str = BOTH) -> list[float]:
    """Root mean square of the errors that releases state, for the paper's number of rows."""
    part = rows.of("variance").where(method=method, question=question, summed=summed)
    return [float(np.sqrt(row.mean * row["rows"] / PAPER_ROWS)) for row in part]


def measured_errors(rows: Rows, question: str, method: str = GRID) -> list[float]:
    """Root mean square of the errors themselves, for the paper's number of rows."""
    part = rows.of("square").where(method=method, question=question)
    return [float(np.sqrt(row.mean * row["rows"] / PAPER_ROWS)) for row in part]


def plot(rows: Rows, figure: Any) -> None:
    """Standard errors by ε: ours as lines, those printed as marks. Dotted: hours alone can be summed."""
    grid = figure.subplots(1, len(QUESTIONS), sharey=True)
    for axes, question in zip(grid, QUESTIONS, strict=True):
        for number, method in enumerate((*METHODS, BASELINE)):
            line = LINES[method]
            axes.plot(EPSILONS, stderrs(rows, method, question), color=line.colour, marker=".", label=method)
            if method in GROUPED:
                axes.plot(EPSILONS, stderrs(rows, method, question, ALONE), color=line.colour, linestyle=":")
            if line.paper and method != BASELINE:
                printed = [PRINTED[question, epsilon][number] for epsilon in EPSILONS]
                style = {"color": line.colour, "marker": line.marker, "fillstyle": "none", "linestyle": "none"}
                axes.plot(EPSILONS, printed, label=f"{method}, printed", **style)
        style = {"color": LINES[GRID].colour, "marker": LINES[GRID].marker, "linestyle": "none"}
        axes.plot(EPSILONS, measured_errors(rows, question), label="grid, measured", **style)
        axes.set(xscale="log", yscale="log", xlabel="ε", title=question)
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.minorticks_off()
    grid[0].set_ylabel("error of AVG(hours)")
    add_legend(figure, grid, columns=6)


def _cells(rows: Rows, method: str, question: str, summed: str = BOTH) -> list[str]:
    """Standard errors by ε, with the printed ones in brackets if there are any."""
    own = stderrs(rows, method, question, summed)
    if method == BASELINE:
        return [f"{error:.3g}" for error in own]
    if not LINES[method].paper:
        return [f"**{error:.3g}**" for error in own]
    printed = [PRINTED[question, epsilon][METHODS.index(method)] for epsilon in EPSILONS]
    return [f"{error:.3g} ({theirs:.3g})" for error, theirs in zip(own, printed, strict=True)]


def printed_over_own(rows: Rows, summed: str) -> Floats:
    """The printed deviation of every cell over the one that the same method states here."""
    return np.array([
        PRINTED[question, epsilon][number] / own
        for question in QUESTIONS
        for number, method in enumerate(METHODS)
        if LINES[method].paper
        for epsilon, own in zip(
            EPSILONS, stderrs(rows, method, question, summed if method in GROUPED else BOTH), strict=True
        )
    ])  # fmt: skip


def _ratios(rows: Rows, method: str, other: str) -> Floats:
    """What a method states over what another one does, cell by cell."""
    return np.concatenate([
        np.array(stderrs(rows, method, question)) / stderrs(rows, other, question) for question in QUESTIONS
    ])  # fmt: skip


def clearly_better(rows: Rows) -> tuple[list[str], list[str]]:
    """Cells where ours is clearly better than the grid, and cells where the grid is.

    Ours is unbiased, and the mean square that it states is known well. The grid's measured one is known from a few
    releases: it must differ by so many of its standard errors that by Student's law chance is below 1 % in a cell.
    """
    ours_ahead: list[str] = []
    grid_ahead: list[str] = []
    for question in QUESTIONS:
        for epsilon in EPSILONS:
            where = {"question": question, "epsilon": epsilon}
            grid = rows.of("square").only(method=GRID, **where)
            ours = rows.of("variance").only(method="ours", **where)
            apart = (grid.mean - ours.mean * ours["rows"] / PAPER_ROWS) / grid.stderr
            if abs(apart) > stdtrit(grid.repetitions - 1, 0.995):
                (ours_ahead if apart > 0 else grid_ahead).append(f"{question} at ε = {epsilon:g}")
    return ours_ahead, grid_ahead


def listed(cells: list[str]) -> str:
    """Some cells in words."""
    return ", ".join(cells) or "no cell"


def describe(rows: Rows) -> str:
    """Every cell, printed next to ours."""
    lines, alone = [], []
    for question in QUESTIONS:
        ordered = (METHODS[0], BASELINE, *METHODS[1:])
        lines += [[f"{question}, {method}", *_cells(rows, method, question)] for method in ordered]
        lines.append([f"{question}, grid, measured", *(f"{error:.3g}" for error in measured_errors(rows, question))])
        alone += [[f"{question}, {method}", *_cells(rows, method, question, ALONE)] for method in GROUPED]
    over_rdc, over_grid, over_ahio = (
        _ratios(rows, *pair) for pair in (("AHIO-RDC", "ours"), ("ours", GRID), (BASELINE, "AHIO"))
    )
    best = np.array([min(PRINTED[question, epsilon]) for question in QUESTIONS for epsilon in EPSILONS])
    over_printed = best / np.concatenate([stderrs(rows, "ours", question) for question in QUESTIONS])
    both, single = (printed_over_own(rows, summed) for summed in TABLES)
    spread = [
        answer.stderr**2 * answer.repetitions / variance.mean
        for answer, variance in zip(rows.of("answer"), rows.of("variance"), strict=True)
        if variance.mean < 25 and variance["method"] != GRID
    ]
    honest = np.concatenate([
        np.array(measured_errors(rows, question)) / stderrs(rows, GRID, question) for question in QUESTIONS
    ])  # fmt: skip
    biased = [
        1 - answer.stderr**2 * (answer.repetitions - 1) / square.mean
        for name in ("Q1", "Q2")
        for answer, square in zip(
            *(rows.of(quantity).where(method=GRID, question=name) for quantity in ("answer", "square")), strict=True
        )
        if answer["epsilon"] <= 2
    ]
    ours_ahead, grid_ahead = clearly_better(rows)
    releases = rows.rows[0].repetitions
    scaled = "" if rows.rows[0]["rows"] == PAPER_ROWS else "scaled by √n to 3 million rows, "
    head = ["standard error (printed)", *(f"ε = {epsilon:g}" for epsilon in EPSILONS)]
    return f"""Every cell, printed values in brackets. Age and hours can be summed, so AHIO and EHIO divide users
between two groups:

{markdown_table(head, lines)}

Standard errors are the root mean square of those that the releases state, {scaled}next to the printed standard
deviations of ten releases, each of which is known to about a quarter. The printed ones are between
{both.min():.2g} and {both.max():.2g} times what the same method has here (median {np.median(both):.3g}). Where an
answer is clear, the variance of the releases themselves is {np.mean(spread):.2f} times the stated one on average.

The paper divides users among all attributes of a table. If hours are the only attribute that can be summed, there is
one group, and AHIO and EHIO have smaller errors than the paper could have: the printed ones are then
{single.min():.2g} to {single.max():.2g} times ours (median {np.median(single):.3g}):

{markdown_table(head, alone)}

SR-HIO rounds every attribute that can be summed in each report. The paper bounds its error by 2^d where AHIO has 2d:
for two attributes that is the same. Here it has {over_ahio.min():.2g} to {over_ahio.max():.2g} times AHIO's standard
errors.

**Ours** has {over_rdc.min():.2g} to {over_rdc.max():.2g} times smaller standard errors than AHIO-RDC in the same run,
and {over_printed.min():.2g} to {over_printed.max():.2g} times smaller ones than the best printed in each cell. AHIO-RDC
equals AHIO for Q1 in the paper, which decomposes ranges only; here a category is also everything minus the others.

**The grid** is fitted to these three questions before anything is collected and assumes something of how rows lie
inside its cells, so that it is biased; it is measured with 3 million rows itself. Our standard errors are
{over_grid.min():.2g} to {over_grid.max():.2g} times those that it states, noise and assumption together
(median {np.median(over_grid):.2g}).
Its measured errors are {honest.min():.2g} to {honest.max():.2g} times what it states (median {np.median(honest):.2g}).
Measured errors of {releases} releases say little about single cells. Compared with our stated errors, which are known
well, they are larger in {listed(ours_ahead)} and smaller in {listed(grid_ahead)} by
more than chance explains (1 % in a cell, by Student's law). In Q1 and Q2 up to ε = 2 bias is {np.mean(biased):.0%} of
the grid's mean square. Many people work exactly 0 or 40 hours, and cells of 12 or 25 hours do not show where in a cell
its rows are; the grid learns such heaps from how its views differ.

{about_precision(rows, "variance", "square")}

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
