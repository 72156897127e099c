"""How many people of an age live in a place, their ages summed and averaged: a case study  [XDW20, Fig. 9]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.table_data import CALIFORNIA, SIZES_1940
from deniable_lab.experiments.tables._errors import AGGREGATES, AVG, NOTHING, Ask, Release, truths
from deniable_lab.experiments.tables._grids import about_grid
from deniable_lab.experiments.tables._households import ASSUMED, COUNTRY, METHODS, REGION, ROWS, name_of, study
from deniable_lab.experiments.tables._lines import LINES
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.tables._precision import about_precision
from deniable_lab.experiments.writing import markdown_table

EPSILONS = (2.0, 5.0)
GROUPS = ((1, 20), (21, 45), (46, 70), (71, 95), (96, 120))
SURVEY, LARGE = "survey", "as in 1940"
HOMES: dict[str, tuple[float, ...]] = {SURVEY: (), LARGE: SIZES_1940}
"""How large households are: as in the survey, or as in the year of the paper's."""


def settings(data: Data, quick: bool) -> list[Setting]:
    """Sizes of households, samples and ε."""
    common: Setting = {"data": name_of(data)}
    return [
        {**common, "homes": homes, "sample": sample, "rows": 1_000_000 if quick else ROWS[sample], "epsilon": epsilon}
        for homes in HOMES
        for sample in (COUNTRY, REGION)
        for epsilon in EPSILONS
    ]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """The answers of one release, next to the truth."""
    made = study(str(setting["sample"]), int(setting["rows"]), data, HOMES[str(setting["homes"])])
    release = Release(made, float(setting["epsilon"]), seed)
    in_california = {"state": f"state = {CALIFORNIA}"}
    asks = [Ask("age", {**in_california, "age": f"age BETWEEN {low} AND {high}"}) for low, high in GROUPS]
    truth, whole = truths(made, asks), truths(made, [Ask("age", {})])[0]
    measured: list[tuple[Setting, dict[str, float]]] = [
        ({"ages": f"{group[0]}-{group[1]}", "method": NOTHING, "aggregate": aggregate}, {"NMSE": share**2})
        for group, shares in zip(GROUPS, (truth / whole).tolist(), strict=True)
        for aggregate, share in zip(AGGREGATES, shares, strict=True)
        if aggregate != AVG
    ]
    for line in (LINES[name] for name in METHODS):
        for group, ask, right in zip(GROUPS, asks, truth, strict=True):
            for number, (aggregate, (value, stated)) in enumerate(release.answer(line, ask, asks).items()):
                numbers = {"answer": value, "truth": float(right[number])}
                if aggregate != AVG:
                    numbers["NMSE"] = ((value - right[number]) / whole[number]) ** 2
                    numbers["stated"] = (stated / whole[number]) ** 2
                where: Setting = {"ages": f"{group[0]}-{group[1]}", "method": line.name, "aggregate": aggregate}
                measured.append((where, numbers))
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """Aggregates from top to bottom; samples and ε from left to right. Bars are the truth, marks the median release.

    Households are those of the survey.
    """
    rows = rows.where(homes=SURVEY)
    columns = [(sample, epsilon) for sample in (COUNTRY, REGION) for epsilon in EPSILONS]
    grid = figure.subplots(len(AGGREGATES), len(columns), sharex=True)
    names = [f"{low}-{high}" for low, high in GROUPS]
    for column, (sample, epsilon) in enumerate(columns):
        for axes, aggregate in zip(grid[:, column], AGGREGATES, strict=True):
            part = rows.where(sample=sample, epsilon=epsilon, aggregate=aggregate)
            truth = np.nan_to_num(part.of("truth").where(method="ours").means)
            axes.bar(range(len(names)), truth, color="0.85", width=0.8, label="truth")
            for number, method in enumerate(METHODS):
                line, answers = LINES[method], part.of("answer").where(method=method)
                at = np.arange(len(names)) + 0.2 * (number - 1.5)
                low, high = np.array([[row.low, row.high] for row in answers]).T
                spread = np.maximum(np.array([answers.medians - low, high - answers.medians]), 0)
                fill = "none" if line.paper else "full"
                axes.errorbar(at, answers.medians, spread, color=line.colour, marker=line.marker, fillstyle=fill,
                              linestyle="none", elinewidth=0.8, label=method)  # fmt: skip
            if aggregate == AVG:
                axes.set_ylim(0, 130)
            else:
                axes.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
            if column == 0:
                axes.set_ylabel(aggregate if aggregate == "COUNT" else f"{aggregate} of age")
            axes.set_xticks(range(len(names)), names, rotation=60)
        grid[0, column].set_title(f"{sample}, ε = {epsilon:g}")
    add_legend(figure, grid.ravel())


def describe(rows: Rows) -> str:
    """Errors by sample and ε, relative to all people; then those of larger households."""
    every, rows = rows, rows.where(homes=SURVEY)
    stated, measured = rows.of("stated"), rows.of("NMSE")
    lines = []
    for sample in (COUNTRY, REGION):
        for epsilon in EPSILONS:
            for method in (*METHODS, NOTHING):
                cells = []
                for aggregate in ("COUNT", "SUM"):
                    where = {"sample": sample, "epsilon": epsilon, "method": method, "aggregate": aggregate}
                    squares = [quantity.where(**where).means for quantity in (measured, stated)]
                    cells += [f"{np.sqrt(square.mean()):.2%}" if square.size else "" for square in squares]
                lines.append([f"{sample}, ε = {epsilon:g}, {method}", *cells])
    head = ["error as a share of all", "COUNT, measured", "stated", "SUM, measured", "stated"]

    def ratio(method: str, other: str, aggregate: str) -> str:
        ratios = [
            np.sqrt(part.where(method=method).means.mean() / part.where(method=other).means.mean())
            for _, part in stated.where(aggregate=aggregate, epsilon=5.0).split("sample")
        ]
        return " and ".join(f"{value:.2g}" for value in ratios)

    def whole(method: str, sample: str, homes: str = SURVEY, epsilon: float = 2.0) -> float:
        where = {"homes": homes, "method": method, "sample": sample, "aggregate": "COUNT", "epsilon": epsilon}
        part = every.of("stated").where(**where)
        return float(np.sqrt(part.means.mean() * part.rows[0]["rows"] / ROWS[sample]))

    def largest(sample: str) -> float:
        part = rows.of("truth").where(sample=sample, aggregate="COUNT")
        return float(max(part.means) / part.rows[0]["rows"])

    larger = [
        [
            f"{sample}, ε = {epsilon:g}, {method}",
            *(f"{whole(method, sample, homes, epsilon):.1%}" for homes in HOMES),
            f"{whole(method, sample, SURVEY, epsilon) / whole(method, sample, LARGE, epsilon):.2f}",
        ]
        for sample in (COUNTRY, REGION)
        for epsilon in EPSILONS
        for method in METHODS[:-1]
    ]
    clearer = [whole(method, sample, SURVEY, epsilon) / whole(method, sample, LARGE, epsilon)
               for method in METHODS[:-1] for sample in (COUNTRY, REGION) for epsilon in EPSILONS]  # fmt: skip
    readable = [sample for sample in (COUNTRY, REGION) if 2 * whole("ours", sample, LARGE) < largest(sample)]

    return f"""Errors by sample, ε and method:

{markdown_table(head, lines)}

Root mean squares over the five age groups. At ε = 5, standard errors of HIO-JOIN are
{ratio("HIO-JOIN", "HIO-JOIN-RDC", "COUNT")} times those of HIO-JOIN-RDC for COUNT
({ratio("HIO-JOIN", "HIO-JOIN-RDC", "SUM")} for SUM), and those of HIO-JOIN-RDC are
{ratio("HIO-JOIN-RDC", "ours", "COUNT")} times ours for COUNT ({ratio("HIO-JOIN-RDC", "ours", "SUM")} for SUM) in the
country and in the west. The paper prints no numbers here. By these errors HIO-JOIN's COUNT at ε = 2 has a standard
error of {whole("HIO-JOIN", COUNTRY):.0%} of all people at the paper's size in the country and
{whole("HIO-JOIN", REGION):.0%} in the west ({whole("ours", COUNTRY):.1%} and {whole("ours", REGION):.1%} ours), while
the largest group asked about is {largest(COUNTRY):.0%} and {largest(REGION):.0%} of them: at ε = 2 the study is lost
in noise with every method that assumes nothing. Marks in the picture are medians of the releases, with 5 % to 95 %
of them; averages of groups whose count is lost in noise can be anywhere, and those of the oldest group, which is
empty, have no truth.

**Larger households.** The paper's persons are those of the census of 1940, up to ten in a household; it does not say
how many households there are. The survey has 1.4 tax units per household, and 1940 had 3.67 persons (34,949,000
households; Statistical Abstract of the United States 2008, from Current Population Reports). How sizes spread around
that mean is an assumption of this study, not a figure of the census. It has that mean, and from three persons on it
falls about as in the census itself: of households with three persons or more, 67 % have a fourth, 40 % a
fifth and 24 % a sixth, where the census has 64 %, 36 % and 22 % (by the numbers within households of 62,836 persons
below 50, CenSoc-Numident demo, each year of age counted alike). So the same people are put into households of such
sizes, of which there are 2.6 times fewer. Stated standard errors of COUNT, at the paper's number of people:

{markdown_table(["share of all people", "1.4 per household", "3.7 per household", "times smaller"], larger)}

Without assumptions errors are {min(clearer):.2f} to {max(clearer):.2f} times smaller: the noise is that of the
households, each of which may stand for ten people, and there are fewer of them. At ε = 2 the largest group
({largest(COUNTRY):.0%} of all people in the country, {largest(REGION):.0%} in the west) is then more than two
standard errors of ours in {" and ".join(f"the {sample}" for sample in readable) or "neither"}. HIO-JOIN's errors are
{whole("HIO-JOIN", COUNTRY, LARGE):.0%} and {whole("HIO-JOIN", REGION, LARGE):.0%}.

{about_precision(every)}

{about_grid(rows, over=("ages",))} Squares are
averaged over age groups; *nothing* is the error of saying 0. Households are those of the survey.

{ASSUMED}"""


EXPERIMENT = Experiment(
    "Ages of people in one place",
    "[XDW20, Fig. 9]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(3, 15),
    size=(8.5, 6.2),
    setting=(
        "COUNT(*), SUM(age) and AVG(age) of people in one place and age group, over homes joined to people, "
        "τ_max = 10, τ = 1; 3.42 and 7.56 million people, with --quick one million; households as in the survey, "
        "and as large as in 1940."
    ),
)
