"""Standard errors of the averages of [XDW20, Table 2]: the paper's methods and our defaults, beside those printed.

The paper's rows (3 million census records) are not public in that form. Rows of the same shape are drawn from the
American Time Use Survey when its tables are at hand, else from a rough model of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.measuring import measure as measured
from deniable.engines.reading import connect
from deniable.queries.estimation import covariance
from deniable.queries.formula import gradient_at
from deniable.randomness import SeededSource
from deniable.tables import Categorical, Collection, Ordinal, Table

MARITAL = ("married", "divorced", "separated", "widowed", "single")
PEOPLE = Table("people", age=Ordinal(1, 95, summed=False), marital=Categorical(*MARITAL), hours=Ordinal(0, 99))
QUESTIONS = {
    "Q1": "SELECT AVG(hours) FROM people WHERE marital = 'married'",
    "Q2": "SELECT AVG(hours) FROM people WHERE marital = 'married' AND age BETWEEN 31 AND 70",
    "Q3": "SELECT AVG(hours) FROM people WHERE marital = 'single' AND age BETWEEN 31 AND 50",
}
METHODS = {
    "HIO": ("hio", "olh", "greedy", "direct"),
    "AHIO": ("ahio", "olh", "greedy", "designed"),
    "EHIO": ("ehio", "olh", "greedy", "designed"),
    "AHIO-RDC": ("ahio", "olh", "rdc", "designed"),
    "ours": ("hio", "auto", "optimal", "direct"),
}
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


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the table."""

    epsilon: float
    question: str
    method: str
    stderr: float
    printed: float
    """The method's own printed figure; for ours the best printed one of all methods."""
    wanted: float
    """How many times smaller than the printed figure ours has to be; 0 where that is not asked."""


def measure(data: str | None, rows: int, runs: int, advance: Callable[[int], None]) -> Iterator[Cell]:
    """All cells. A standard error is the root mean square of those that the releases state."""
    frame = _rows(data, rows)
    exact = Collection(PEOPLE, epsilon=float("inf"), design="mg")
    database = connect(exact.perturb(people=frame, source=SeededSource(0), simulation=True))
    truths = {name: measured(database.plan(text), database.stores, {}).sums for name, text in QUESTIONS.items()}
    plain = {
        name: measured(database.plan(text, sums="designed"), database.stores, {}).sums
        for name, text in QUESTIONS.items()
    }
    for epsilon in EPSILONS:
        for method, (design, oracle, weights, sums) in METHODS.items():
            collection = Collection(PEOPLE, epsilon=epsilon, design=design, oracle=oracle)
            squares = dict.fromkeys(QUESTIONS, 0.0)
            for run in range(runs):
                found = connect(collection.perturb(people=frame, source=SeededSource(run), simulation=True))
                for name, text in QUESTIONS.items():
                    plan = found.plan(text, weights=weights, sums=sums)
                    moments = measured(plan, found.stores, {})
                    spread = covariance(plan.question, moments, single_rows=True)
                    # The slope of the quotient at the true moments: a noisy denominator would spoil it.
                    truth = (truths if sums == "direct" else plain)[name]
                    slope = gradient_at(plan.question.outputs[0].formula, truth)
                    squares[name] += float(np.einsum("gi,gij,gj->g", slope, spread, slope)[0])
            for name, total in squares.items():
                printed = PRINTED[name, epsilon]
                ours = method == "ours"
                figure = min(printed) if ours else printed[list(METHODS).index(method)]
                wanted = (2.0 if epsilon <= 2.0 else 1.0) if ours else 0.0
                yield Cell(epsilon, name, method, float(np.sqrt(total / runs)), figure, wanted)
            advance(1)


def _rows(data: str | None, rows: int) -> pa.Table:
    random = np.random.default_rng(1)
    if data is None:
        age = np.clip(random.normal(47, 18, rows), 15, 85).astype(np.int64)
        weights = np.array([0.51, 0.13, 0.03, 0.09, 0.24])
        marital = random.choice(len(MARITAL), rows, p=weights)
        hours = np.where(random.random(rows) < 0.4, 0, np.clip(random.normal(40, 10, rows), 1, 99)).astype(np.int64)
    else:
        folder = Path(data) / "tables"
        people, work = (pq.read_table(folder / f"atus_{name}.parquet") for name in ("demographics", "work"))
        picked = random.integers(0, people.num_rows, rows)
        age, marital = (people[name].to_numpy().astype(np.int64)[picked] for name in ("age", "marital"))
        hours = np.minimum(work["work_hrs_week"].to_numpy().astype(np.int64)[picked], 99)
    names = pa.array(MARITAL).take(pa.array(marital))
    return pa.table({"uid": np.arange(rows), "age": age, "marital": names, "hours": hours})
