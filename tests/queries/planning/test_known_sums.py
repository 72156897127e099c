"""What is known without any report has an error of exactly zero, however a processor rounds.

Rounding is made a million times worse here than on any machine: an error that is zero all the same is zero by
construction.
"""

from itertools import count

import numpy as np
import pytest

import deniable as dn
from deniable.engines.kernel import grouped_moments as measuring
from deniable.queries.forecasts import even_means
from deniable.queries.forecasts.forecast import error_of, planned
from deniable.queries.grids import smoothness
from deniable.tables.designs import DESIGNS

PEOPLE = dn.Table("people", age=dn.Ordinal(0, 94), sex=dn.Categorical("f", "m", "x"), spent=dn.Public())
CARDS = dn.Table("cards", limit=dn.Ordinal(0, 9))
FRAME = {
    "uid": range(300),
    "age": [7 * number % 95 for number in range(300)],
    "sex": ["f", "m", "x"] * 100,
    "spent": [0.1 * number for number in range(300)],
}
KNOWN = [
    "SELECT COUNT(*) AS n FROM people",
    "SELECT SUM(0.1 + 0.2) AS n FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE age < 20 OR age >= 20",
    "SELECT COUNT(*) AS n FROM people WHERE age < 20 AND age > 30",
    "SELECT SUM(spent) AS n FROM people",
    "SELECT AVG(spent) AS n FROM people WHERE spent > 3",
]


@pytest.fixture(autouse=True)
def _coarse_rounding(monkeypatch):
    """Everything that errors of predictions and answers are differences of is off by about 10^-9, each time anew."""
    calls = count()

    def off(value):
        return value * (1 + 1e-9 * np.sin(next(calls) + 0.5))

    def rounded(function):
        return lambda *given, **named: off(function(*given, **named))

    for owner, name in (
        (even_means.EvenMeans, "columns"),
        (even_means.EvenMeans, "pairs"),
        (measuring, "_symmetric"),
        (measuring, "_between"),
        (smoothness.Ground, "means"),
        (smoothness.Ground, "second"),
    ):
        monkeypatch.setattr(owner, name, rounded(getattr(owner, name)))


@pytest.mark.parametrize("design", [*DESIGNS, "grid"])
def test_forecasts_and_answers_of_what_is_known(design):
    collection = dn.Collection(PEOPLE, epsilon=2.0, design=design)
    database = dn.connect(collection.perturb(people=FRAME, source=dn.SeededSource(1), simulation=True))
    for text in KNOWN:
        assert error_of(planned(collection, text, "optimal", "direct", 1_000), 1_000) == 0.0, text
        for unbiased in {False, design == "grid"}:
            estimate = database.sql(text, unbiased=unbiased).scalar()
            assert (estimate.stderr, estimate.model) == (0.0, 0.0), text
            assert not database.sql(text, unbiased=unbiased).notes
    assert database.sql(KNOWN[0]).scalar().value == 300.0
    some = database.sql("SELECT COUNT(*) AS n FROM people WHERE age < 20 OR sex = 'f'").scalar()
    assert some.stderr > 0.0


@pytest.mark.parametrize("design", ["hio", "grid"])
def test_joins_and_groups(design):
    collection = dn.Collection(PEOPLE, CARDS, epsilon=2.0, design=design)
    frames = {"people": FRAME, "cards": {"uid": range(300), "limit": [number % 10 for number in range(300)]}}
    database = dn.connect(collection.perturb(**frames, source=dn.SeededSource(1), simulation=True))
    joined = "FROM people JOIN cards USING (uid)"
    assert database.sql(f"SELECT COUNT(*) {joined}").scalar().stderr == 0.0
    assert database.sql(f'SELECT COUNT(*) {joined} WHERE "limit" < 5').scalar().stderr > 0.0
    both = database.sql("SELECT sex, COUNT(*) AS n, SUM(spent) AS s FROM people GROUP BY sex")
    assert all(estimate.stderr > 0.0 for estimates in both.answers.values() for estimate in estimates)


def test_rows_are_not_known_where_users_have_several():
    orders = dn.Table("orders", many=5, amount=dn.Ordinal(0, 99))
    for design in ("hio", "grid"):
        collection = dn.Collection(orders, epsilon=2.0, design=design)
        assert error_of(planned(collection, "SELECT COUNT(*) FROM orders", "optimal", "direct", 1_000), 1_000) > 0.0


def test_a_fit_knows_it_too():
    workload = ["SELECT COUNT(*) FROM people", "SELECT COUNT(*) FROM people WHERE age BETWEEN 20 AND 40"]
    known, asked = dn.fit(PEOPLE, epsilon=1.0, users=1_000, workload=workload, compared=False).errors["grid"]
    assert known == 0.0 < asked
