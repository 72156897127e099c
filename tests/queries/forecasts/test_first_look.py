"""Two looks: the reports of a first group of users choose the design of the rest."""

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter
from deniable.queries.forecasts.first_look import densities
from deniable.queries.grids.fitting_prior import expected_density

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


@pytest.mark.parametrize("shape", ["skewed", "spiky"])
def test_two_looks_halve_the_error_on_uneven_data_and_say_so_beforehand(shape):
    values = drawn(shape)
    early = np.arange(PEOPLE) % 5 == 0
    first = reports(dn.Collection(TABLE, epsilon=4.0), values, early, 1)
    proposal = dn.plan(TABLE, None, epsilon=4.0, users=int((~early).sum()), after=dn.connect(first))
    both = dn.connect([first, reports(proposal.collection, values, ~early, 2)])
    one = dn.fit(TABLE, epsilon=4.0, users=PEOPLE, compared=False).collection
    single = dn.connect(reports(one, values, early | ~early, 3))
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
