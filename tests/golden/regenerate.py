"""Queries with their plans and weights (`plans.txt`), and queries after each pass of parsing (`passes.txt`).

    .venv/bin/python tests/golden/regenerate.py

writes both files anew. Look at the difference before committing it: a plan that changed is a change of every answer.
"""
# ruff: noqa: E501 - a query reads best on one line

import sys
from datetime import date
from pathlib import Path

import pyarrow as pa

import deniable as dn
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.queries.parsing.draft import Draft
from deniable.queries.parsing.sql import PASSES, parse
from deniable.queries.planning.plan import make_plan

sys.path.insert(0, str(Path(__file__).parents[1]))

from golden.plan_weights import weights_text

PATH = Path(__file__).with_name("plans.txt")
PASSES_PATH = Path(__file__).with_name("passes.txt")

USERS = dn.Table(
    "users",
    age=dn.Ordinal(1, 95),
    marital=dn.Categorical("married", "single", "widowed"),
    city=dn.Public(),
    score=dn.Public(),
)
ORDERS = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500), category=dn.Categorical("sports", "books", "food"))
VISITS = dn.Table(
    "visits", many=4, tau=2, minutes=dn.Ordinal(0, 60), day=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 31))
)
JOBS = dn.Table(
    "jobs",
    hours=dn.Ordinal(0, 80),
    pay=dn.Ordinal(0, "99.5", "0.5"),
    remote=dn.Categorical(True, False),
    region=dn.Public(),
)
DIMENSIONS = {
    "categories": pa.table({"category": ["sports", "books"], "shelf": ["left", "right"], "price": [3.5, 1.25]}),
    "cities": pa.table({"name": ["Rome", "Oslo"], "country": ["Italy", "Norway"]}),
}
COLLECTIONS = {
    "hio": dn.Collection(USERS, ORDERS, VISITS, JOBS, epsilon=4.0),
    "ahio": dn.Collection(USERS, ORDERS, epsilon=2.0, design="ahio"),
    "ehio": dn.Collection(USERS, ORDERS, epsilon=2.0, design="ehio"),
    "sr-hio": dn.Collection(USERS, ORDERS, epsilon=2.0, design="sr-hio"),
    "sc": dn.Collection(USERS, ORDERS, epsilon=4.0, design="sc"),
    "mg": dn.Collection(USERS, JOBS, epsilon=4.0, design="mg", fanout=8),
    "amg": dn.Collection(USERS, epsilon=1.0, design="amg"),
    "grid": dn.Collection(USERS, ORDERS, epsilon=4.0, design="grid", grids={"users": [
        dn.GridView({"age": 8, "marital": 3}, weight=2), dn.GridView({"age": dn.Points([0, 30, 94])}), dn.GridView({"age": 20}),
    ]}),
    "hashing": dn.Collection(USERS, JOBS, epsilon=1.0, fanout=4, oracle="olh", shares={"users": 2, "jobs": 1}),
}  # fmt: skip

RANGE = "SELECT COUNT(*) FROM users WHERE age BETWEEN 20 AND 40"
SUM = "SELECT SUM(age) FROM users WHERE marital = 'single'"
CASES = [
    # (collection, weights, sums, query)
    *(("hio", weights, "direct", RANGE) for weights in ("greedy", "rdc(1)", "rdc(4)", "rdc(16)", "optimal")),
    *((design, "optimal", "direct", RANGE) for design in ("ahio", "ehio", "sr-hio", "sc", "mg", "amg", "hashing")),
    *(("grid", "optimal", "direct", query) for query in (
        RANGE,
        SUM,
        "SELECT marital, COUNT(*), AVG(age) FROM users WHERE city = 'Rome' GROUP BY marital",
        "SELECT SUM(score) FROM users WHERE age < 30 OR marital = 'single'",
        "SELECT COUNT(*), AVG(amount) FROM orders JOIN users USING (uid) WHERE age < 50 AND category = 'books'",
    )),
    *((design, "greedy", "designed", SUM) for design in ("ahio", "ehio", "sr-hio", "sc", "mg", "amg")),
    *((design, "optimal", "direct", SUM) for design in ("hio", "ahio", "ehio", "sr-hio")),
    ("ahio", "rdc(4)", "designed", "SELECT AVG(age) FROM users WHERE age > 30"),
    ("ehio", "rdc(4)", "designed", "SELECT AVG(age) FROM users WHERE age > 30 AND marital <> 'widowed'"),
    ("ahio", "optimal", "designed", "SELECT SUM(amount) FROM orders WHERE category = 'books'"),
    ("ehio", "optimal", "designed", "SELECT SUM(amount) FROM orders WHERE category = 'books'"),
    *(("hio", "optimal", "direct", query) for query in [
        "SELECT COUNT(*) FROM users",
        "SELECT COUNT(*) FROM users WHERE age = 17",
        "SELECT COUNT(*) FROM users WHERE age <> 17",
        "SELECT COUNT(*) FROM users WHERE age <= 25",
        "SELECT COUNT(*) FROM users WHERE age > 24.5",
        "SELECT COUNT(*) FROM users WHERE age IN (20, 30, 40)",
        "SELECT COUNT(*) FROM users WHERE NOT age BETWEEN 20 AND 40",
        "SELECT COUNT(*) FROM users WHERE age < 30 OR age > 60",
        "SELECT COUNT(*) FROM users WHERE age < 30 OR marital = 'single'",
        "SELECT COUNT(*) FROM users WHERE NOT (age < 30 AND marital = 'single')",
        "SELECT COUNT(*) FROM users WHERE city = 'Rome'",
        "SELECT COUNT(*) FROM users WHERE city = 'Rome' AND age < 30",
        "SELECT COUNT(*) FROM users WHERE city = 'Rome' OR age < 30",
        "SELECT COUNT(*) FROM users WHERE NOT (city = 'Rome' OR score > 3) AND marital IN ('single', 'widowed')",
        "SELECT COUNT(*) FROM users WHERE FLOOR(age / 10) = 3",
        "SELECT COUNT(*) FROM users WHERE 2 * age + 1 > 100",
        "SELECT COUNT(*) FROM users WHERE age < 30 AND age > 60",
        "SELECT SUM(age) FROM users",
        "SELECT SUM(2 * age - 1) FROM users WHERE age > 50",
        "SELECT SUM(age * age) FROM users",
        "SELECT AVG(age) FROM users WHERE marital = 'married'",
        "SELECT VAR_POP(age) FROM users",
        "SELECT STDDEV(age) FROM users WHERE marital = 'married'",
        "SELECT SUM(score) FROM users WHERE age > 30",
        "SELECT AVG(score) FROM users WHERE age > 30",
        "SELECT SUM(score * age) FROM users",
        "SELECT SUM(age) / COUNT(*) - AVG(score) AS difference FROM users",
        "SELECT marital, COUNT(*) FROM users GROUP BY marital",
        "SELECT city, COUNT(*), AVG(age) FROM users GROUP BY city",
        "SELECT city, marital, COUNT(*) FROM users WHERE age < 50 GROUP BY city, marital",
        "SELECT age, COUNT(*) FROM users GROUP BY age",
        "SELECT FLOOR(age / 10) AS decade, COUNT(*) FROM users GROUP BY decade ORDER BY decade",
        "SELECT marital, AVG(age) AS a FROM users GROUP BY marital HAVING COUNT(*) > 100 ORDER BY a DESC LIMIT 2",
        "SELECT COUNT(*) FROM orders WHERE amount >= 100",
        "SELECT SUM(amount) FROM orders",
        "SELECT AVG(amount) FROM orders WHERE category = 'sports' AND amount BETWEEN 10 AND 400",
        "SELECT category, SUM(amount) FROM orders GROUP BY category",
        "SELECT AVG(minutes) FROM visits WHERE day < DATE '2020-01-08'",
        "SELECT day, COUNT(*) FROM visits GROUP BY day",
        "SELECT AVG(pay) FROM jobs WHERE remote AND hours > 20",
        "SELECT SUM(pay * hours) FROM jobs WHERE region = 'north'",
        "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE age < 30 AND hours > 40",
        "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE age < 30 OR hours > 40",
        "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE city = 'Rome' OR region = 'north'",
        "SELECT SUM(age * hours) FROM users JOIN jobs USING (uid)",
        "SELECT AVG(amount) FROM orders JOIN users USING (uid) WHERE category = 'sports' AND age BETWEEN 20 AND 40",
        "SELECT marital, AVG(amount) FROM orders JOIN users USING (uid) GROUP BY marital",
        "SELECT COUNT(*) FROM orders JOIN users USING (uid) JOIN jobs USING (uid) WHERE amount > 9 AND age > 9 AND hours > 9",
        "SELECT COUNT(*) FROM orders JOIN categories USING (category)",
        "SELECT shelf, SUM(amount * price) FROM orders JOIN categories USING (category) GROUP BY shelf",
        "SELECT COUNT(*) FROM orders JOIN categories USING (category) WHERE shelf = 'left' OR amount < 10",
        "SELECT country, COUNT(*) FROM users JOIN cities ON city = cities.name GROUP BY country",
        "SELECT COUNT(*) FROM users JOIN cities ON city = cities.name WHERE country = 'Italy' AND age > 30",
    ]),
    ("sc", "optimal", "direct", "SELECT COUNT(*) FROM users WHERE age < 30 AND marital = 'single'"),
    ("sc", "greedy", "direct", "SELECT AVG(amount) FROM orders JOIN users USING (uid) WHERE age < 30 OR category = 'food'"),
    ("mg", "optimal", "direct", "SELECT marital, COUNT(*) FROM users GROUP BY marital"),
    ("hashing", "greedy", "direct", "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE age < 30 AND hours > 40"),
    ("hashing", "rdc", "direct", "SELECT COUNT(*) FROM jobs WHERE hours BETWEEN 10 AND 50 AND remote"),
    ("hashing", "rdc_each", "direct", "SELECT COUNT(*) FROM jobs WHERE hours BETWEEN 10 AND 50 AND remote"),
]  # fmt: skip


PASS_CASES = [
    "SELECT COUNT(*) FROM users",
    "SELECT COUNT(*) AS n FROM users AS u WHERE NOT (u.age < 20 OR age > 40) AND marital IN ('single', 'widowed')",
    "SELECT COUNT(*) FROM users WHERE city = 'Rome' AND (age < 30 OR score > 3)",
    "SELECT AVG(age), VAR_POP(age), STDDEV(2 * age - 1) FROM users WHERE marital <> 'married'",
    "SELECT SUM(age) / COUNT(*) - AVG(score) AS difference FROM users",
    "SELECT FLOOR(age / 10) * 10 AS bin, city, COUNT(*) FROM users GROUP BY bin, 2 ORDER BY bin DESC, city LIMIT 5 OFFSET 1",
    "SELECT marital, AVG(age) AS a FROM users GROUP BY ALL HAVING COUNT(*) > 100 AND NOT a BETWEEN 20 AND 30 ORDER BY SUM(age)",
    "SELECT COUNT(*) FROM users JOIN jobs USING (uid) WHERE 2 * hours // 3 >= 40 OR city = 'Rome'",
    "SELECT SUM(amount * price) FROM orders JOIN categories c USING (category) WHERE c.shelf = 'left'",
    "SELECT country, COUNT(*) FROM users JOIN cities ON city = cities.name WHERE age > 30 GROUP BY country",
    "WITH t AS (SELECT age AS a, marital FROM users WHERE age > 20) SELECT COUNT_IF(a > 200) AS n FROM t WHERE marital <> 'single'",
    "SELECT AVG(minutes) FROM visits WHERE day BETWEEN '2020-01-08' AND DATE '2020-01-20'",
    "SELECT marital, COUNT(*) AS n FROM users GROUP BY marital HAVING marital <> 'single' AND COUNT(*) > 100",
]


def passes():
    """Every query of `PASS_CASES`, with what each pass of parsing adds to what is known of it."""
    collection, dimensions = COLLECTIONS["hio"], _dimensions()
    for query in PASS_CASES:
        draft, known, steps = Draft(query, collection, dimensions), [], []
        for step in PASSES:
            draft = step(draft)
            lines = str(draft).splitlines()
            steps.append("\n".join([f"{step.__name__}:", *(f"  {line}" for line in lines if line not in known)]))
            known = lines
        yield query, "\n".join(steps)


def passes_text():
    """The whole file of passes."""
    return "".join(f"{query}\n\n{steps}\n\n\n" for query, steps in passes())


def _dimensions():
    return {name: DimensionTable(name, frame) for name, frame in DIMENSIONS.items()}


def plans():
    """Every case: what was asked of which collection, and its plan."""
    dimensions = _dimensions()
    for name, weights, sums, query in CASES:
        collection = COLLECTIONS[name]
        plan = make_plan(parse(query, collection, dimensions, centred=sums == "direct"), collection, weights, sums)
        yield f"-- {name}, {weights}, {sums}\n{query}", plan


def plan_text(plan):
    """A plan as it prints, and its weights."""
    return f"{plan}\n{weights_text(plan)}"


def text():
    """The whole file of plans."""
    return "".join(f"{asked}\n\n{plan_text(plan)}\n\n\n" for asked, plan in plans())


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
    PASSES_PATH.write_text(passes_text(), encoding="utf-8")
