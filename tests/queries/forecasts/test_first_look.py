"""Two looks: the reports of a first group of users choose the design of the rest."""

from functools import cache

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter
from deniable.queries.forecasts.first_look import densities
from deniable.queries.grids.fitting_prior import expected_density
from deniable.tables.reports.report import Report

SIZE, PEOPLE = 1_000, 40_000
TABLE = dn.Table("p", a=dn.Ordinal(0, SIZE - 1))


def drawn(shape):
    random = np.random.default_rng(5)
    if shape == "skewed":
        values = np.exp(random.normal(np.log(SIZE * 0.02), 0.8, PEOPLE))
    else:
        places = SIZE * np.array([0.1, 0.4, 0.77])[random.integers(0, 3, PEOPLE)]
        values = np.where(
            random.random(PEOPLE) < 0.8, places + random.normal(0, 3, PEOPLE), random.random(PEOPLE) * SIZE
        )
    return np.clip(values, 0, SIZE - 1).astype(int)


def reports(collection, values, chosen, seed):
    rows = {"uid": np.flatnonzero(chosen), "a": values[chosen]}
    return collection.perturb(p=rows, source=dn.SeededSource(seed), simulation=True)


@cache
def one_look():
    """What is fitted to the same number of people without a look."""
    return dn.fit(TABLE, epsilon=4.0, users=PEOPLE, compared=False).collection


@pytest.mark.parametrize("shape", ["skewed", "spiky"])
def test_two_looks_halve_the_error_on_uneven_data_and_say_so_beforehand(shape):
    values = drawn(shape)
    early = np.arange(PEOPLE) % 5 == 0
    first = reports(dn.Collection(TABLE, epsilon=4.0), values, early, 1)
    proposal = dn.plan(TABLE, None, epsilon=4.0, users=int((~early).sum()), after=dn.connect(first))
    both = dn.connect([first, reports(proposal.collection, values, ~early, 2)])
    single = dn.connect(reports(one_look(), values, early | ~early, 3))
    random = np.random.default_rng(6)
    errors = {"one": [], "two": []}
    for low, high in np.sort(random.choice(values, (8, 2)), axis=1).tolist():
        text = f"SELECT COUNT(*) FROM p WHERE a BETWEEN {low} AND {high}"
        truth = ((values >= low) & (values <= high)).sum()
        errors["one"].append(single.sql(text).scalar().value - truth)
        errors["two"].append(both.sql(text).scalar().value - truth)
    spread = {name: np.sqrt(np.mean(np.square(each))) for name, each in errors.items()}
    assert spread["one"] > 1.5 * spread["two"]
    assert proposal.looks.gain > 1.5
    assert "times smaller than with one look" in str(proposal)


def test_a_look_finds_where_rows_are():
    values = drawn("skewed")
    db = dn.connect(reports(dn.Collection(TABLE, epsilon=4.0), values, np.ones(PEOPLE, bool), 1))
    seen = densities(db, db.collection)["p"]["a"]
    assert seen.sum() == pytest.approx(1)
    assert seen.min() >= 0
    assert seen[:40].sum() == pytest.approx((values < 40).mean(), abs=0.05)
    assert expected_density(SIZE, (1,), seen).sum() == pytest.approx(1)
    assert expected_density(SIZE, (1, 500), None).sum() == pytest.approx(1)


def test_a_look_at_other_tables_is_refused():
    db = dn.connect(reports(dn.Collection(TABLE, epsilon=4.0), drawn("skewed"), np.arange(PEOPLE) < 100, 1))
    other = dn.Table("p", a=dn.Ordinal(0, 9))
    with pytest.raises(InvalidParameter, match="other tables"):
        dn.plan(other, None, epsilon=4.0, users=100, after=db)


def test_both_groups_together_are_as_private_as_each():
    """All that two people send, one in each group, for all their values: the second design follows the first report."""
    table, epsilon = dn.Table("p", a=dn.Ordinal(0, 2)), 1.0
    first = dn.Collection(table, epsilon=epsilon, design="mg")
    (view,) = first.design_of("p")
    assert type(view.oracle).__name__ == "RandomizedResponse"
    laws = {(early, late): {} for early in range(3) for late in range(3)}
    designs = set()
    for y in range(3):
        sent = Report(slot=0, view=0, seed=0, y=y, tag=first.tag("p")).to_json(uid=1, table="p")
        proposal = dn.plan(table, None, epsilon=epsilon, users=100, after=dn.connect(first.gather([sent])))
        rest = proposal.collection
        designs.add(rest.sha256)
        for later in rest.design_of("p"):
            for (early, late), law in laws.items():
                cell, _ = later.group.axes[0].located(late, 3)
                seen = later.oracle.law(cell) if later.cells > 1 else [1.0]
                for answer, chance in enumerate(seen):
                    first_chance = float(view.oracle.law(early)[y])
                    law[y, later.number, answer] = first_chance * float(later.probability) * float(chance)
    for law in laws.values():
        assert sum(law.values()) == pytest.approx(1)
    for (early, late), law in laws.items():
        for (other, another), changed in laws.items():
            if early == other or late == another:  # one of the two has another value
                assert max(law[output] / changed[output] for output in law) <= np.exp(epsilon) * (1 + 1e-9)
    assert designs
