"""Joins of transactions with private products: coverage, and errors next to the paper's n²·τ  [XDW20, Section 8.2].

The paper sketches a report for each pair of a user and a product, so that a user's ε is divided by the number of
products. Ours has one report per transaction, and what the product's own report contributes as a function of its id.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import deniable as dn
from deniable.engines.joined_keys import key_functions
from deniable.queries.parsing.sql import parse
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

DATA = "PRODUCTS"
EPSILON, OF_SHOP = 4.0, 2.0
DESIGN = "hio"
OURS, PAPER = "ours", "paper, n²·τ"
COVERED, COMPARED = (20, 200, 2_000), (4, 8, 16)
USERS = 5_000
MOST_COUNTED = 200
"""With more products only the first question is asked: each takes a while."""
COUNTRIES = ("CN", "DE", "FR")
_BOTH = "transactions JOIN users USING (uid) JOIN products USING (pid)"
_SMALL = "transactions JOIN products USING (pid)"
SALES, COUNTED = "SUM(amount), users aged 2 to 5, one country", "COUNT(*), one country"
QUESTIONS = {
    SALES: f"SELECT SUM(amount) AS x FROM {_BOTH} WHERE country = 'CN' AND age BETWEEN 2 AND 5",  # noqa: S608
    COUNTED: f"SELECT COUNT(*) AS x FROM {_SMALL} WHERE country = 'CN'",  # noqa: S608
}
_AGE, _AMOUNT = dn.Ordinal(0, 9), dn.Ordinal(0, 9)


@lru_cache(maxsize=8)
def rows_of(products: int) -> dict[str, pa.Table]:
    """The rows of everybody, the same in every run."""
    random = np.random.default_rng(products)
    bought = 1 + random.choice(products, USERS, p=random.dirichlet(np.full(products, 2.0)))
    return {
        "users": pa.table({"uid": np.arange(USERS), "age": random.integers(0, 10, USERS)}),
        "transactions": pa.table({"uid": np.arange(USERS), "amount": random.integers(0, 10, USERS), "pid": bought}),
        "products": pa.table(
            {
                "pid": np.arange(1, products + 1),
                "country": random.choice(COUNTRIES, products),
                "price": random.integers(0, 10, products),
            }
        ),
    }


@lru_cache(maxsize=8)
def truths(products: int) -> dict[str, float]:
    """What plain SQL answers."""
    with duckdb.connect() as connection:
        for name, frame in rows_of(products).items():
            connection.register(name, frame)
        return {name: float(connection.sql(text).fetchall()[0][0]) for name, text in QUESTIONS.items()}


def scales(products: int) -> dict[str, float]:
    """What errors are relative to: the same aggregate over all transactions."""
    return {SALES: float(pc.sum(rows_of(products)["transactions"]["amount"]).as_py()), COUNTED: float(USERS)}


def collection_of(products: int) -> dn.Collection:
    """People, one transaction each, and products that a shop reports."""
    return dn.Collection(
        dn.Table("users", age=_AGE),
        dn.Table("transactions", amount=_AMOUNT, pid=dn.Ordinal(1, products)),
        dn.Table("products", owner="shop", key="pid", country=dn.Categorical(*COUNTRIES), price=dn.Ordinal(0, 9)),
        epsilon=EPSILON,
        owners={"shop": OF_SHOP},
        design=DESIGN,
    )


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn, and always the same
    """Many products for coverage, few for the comparison."""
    many: list[Setting] = [{"data": DATA, "products": count, "ways": "ours"} for count in COVERED]
    few: list[Setting] = [{"data": DATA, "products": count, "ways": "both"} for count in COMPARED]
    return [*many, *few]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """The answers of one release, next to the truth."""
    products = int(setting["products"])
    rows, truth, scale = rows_of(products), truths(products), scales(products)
    collection = collection_of(products)
    database = dn.connect(collection.perturb(**rows, source=dn.SeededSource(seed), simulation=True))
    measured: list[tuple[Setting, dict[str, float]]] = []
    for name, text in QUESTIONS.items():
        if name == COUNTED and products > MOST_COUNTED:
            continue
        answer = database.sql(text).scalar()
        low, high = answer.interval
        numbers = {"covered": float(low <= truth[name] <= high)}
        numbers |= {
            "NMSE": _square(answer.value - truth[name], scale[name]),
            "stated": _square(answer.stderr, scale[name]),
        }
        measured.append(({"question": name, "method": OURS}, numbers))
    if setting["ways"] == "both":
        value = _by_pairs(database, rows, products, seed)
        measured.append(({"question": SALES, "method": PAPER}, {"NMSE": _square(value - truth[SALES], scale[SALES])}))
    return measured


def _square(error: float, scale: float) -> float:
    return (error / scale) ** 2


def _by_pairs(database: dn.Database, rows: dict[str, pa.Table], products: int, seed: int) -> float:
    """The answer by a report for each pair of a user and a product; products have reported as before."""
    names = [f"bought_{pid}" for pid in range(1, products + 1)]
    tables = [dn.Table(name, many=1, amount=_AMOUNT) for name in names]
    pairs = dn.Collection(dn.Table("users", age=_AGE), *tables, epsilon=EPSILON, design=DESIGN)
    pid = np.asarray(rows["transactions"]["pid"])
    bought = {
        name: rows["transactions"].filter(pa.array(pid == number)).drop_columns(["pid"])
        for number, name in enumerate(names, 1)
    }
    reports = pairs.perturb(users=rows["users"], **bought, source=dn.SeededSource(seed), simulation=True)
    asked = dn.connect(reports)
    contributions = key_functions(parse(QUESTIONS[SALES], database.collection), database.engine, "optimal").values[0]
    sold = [
        asked.sql(f"SELECT SUM(amount) AS x FROM {name} JOIN users USING (uid) WHERE age BETWEEN 2 AND 5")  # noqa: S608
        for name in names
    ]
    return float(np.dot([answer.scalar().value for answer in sold], contributions))


def plot(rows: Rows, figure: Any) -> None:
    """Errors by the number of products, and the comparison."""
    left, right = figure.subplots(1, 2)
    many = rows.where(ways="ours")
    for number, (question, part) in enumerate(many.split("question")):
        error = part.of("NMSE")
        left.plot(error.column("products"), error.means, f"C{number}o", label=question)
        left.plot(error.column("products"), part.of("stated").means, f"C{number}-", linewidth=1.0)
    few = rows.where(ways="both", question=SALES).of("NMSE")
    for marker, (method, part) in zip("os", few.split("method"), strict=True):
        right.plot(part.column("products"), part.means, f"k{marker}-", label=method, alpha=0.6)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("products")
    right.set_xticks(COMPARED, [str(count) for count in COMPARED])
    right.minorticks_off()
    left.set_ylabel("NMSE")
    add_legend(figure, [left, right], columns=3)


def describe(rows: Rows) -> str:
    """Coverage, and how much smaller the error is."""
    many = rows.where(ways="ours")
    lines = []
    for question, part in many.split("question"):
        for row in part.of("covered"):
            error, stated = (part.of(name).only(products=row["products"]).mean for name in ("NMSE", "stated"))
            lines.append([question, f"{row['products']:,}", f"{row.mean:.1%}", f"{error:.2g}", f"{stated:.2g}"])
    few = rows.where(ways="both", question=SALES).of("NMSE")
    ratios = {
        count: few.only(products=count, method=PAPER).mean / few.only(products=count, method=OURS).mean
        for count in COMPARED
    }
    told = ", ".join(f"{ratio:.3g} times with {count} products" for count, ratio in ratios.items())
    runs = next(iter(many)).repetitions
    return f"""Of {runs} releases, how many 95 % intervals hold the truth:

{markdown_table(["question", "products", "covered", "NMSE measured", "NMSE stated"], lines)}

The paper's sketch collects a report for each pair of a user and a product and prints no numbers. Its NMSE for the
first question is larger than ours: {told}. It divides a user's ε by the number of products; ours does not."""


EXPERIMENT = Experiment(
    "Transactions joined with private products",
    "[XDW20, Section 8.2]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(5, 10),
    fewest=lambda setting: 200 if setting["ways"] == "ours" else 1,
    size=(7.0, 3.2),
    setting=(
        f"{USERS:,} people with one transaction each, ε = {EPSILON:g} for a person and {OF_SHOP:g} for a product, "
        f"which a shop reports; design {DESIGN}. "
        "Errors are relative to the same aggregate over all transactions."
    ),
)
