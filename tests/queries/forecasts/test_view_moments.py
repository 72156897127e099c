"""What reports contribute on average where rows are not spread evenly."""

import numpy as np
import pytest

import deniable as dn
from deniable.queries.forecasts.assumed_rows import Assumption
from deniable.queries.forecasts.expected_evidence import expected_learnt
from deniable.queries.forecasts.forecast import planned
from deniable.queries.forecasts.prediction import predict
from deniable.queries.forecasts.view_moments import EvenShares
from deniable.queries.planning.revised_plan import revised
from deniable.queries.weights.table_plan import DIRECT

SIZE = 1_000
DENSITY = np.exp(-np.arange(SIZE) / 40)
SEEN = {"p": {"v": DENSITY / DENSITY.sum()}}
TABLE = dn.Table("p", v=dn.Ordinal(0, SIZE - 1), sex=dn.Categorical("f", "m"))


@pytest.mark.parametrize("many", [None, 4])
def test_where_rows_were_seen_counts_once_also_in_a_plan_that_follows_reports(many):
    table = dn.Table("p", many=many, v=dn.Ordinal(0, SIZE - 1), sex=dn.Categorical("f", "m"))
    collection = dn.fit(table, epsilon=4.0, users=50_000, compared=False).collection
    plan = planned(collection, "SELECT COUNT(*) FROM p WHERE v BETWEEN 3 AND 47", "optimal", DIRECT, 50_000)
    following = revised(plan, {"p": expected_learnt(collection, "p", 50_000, SEEN["p"])})
    assert following.biases
    for each in (plan, following):
        shares = EvenShares.of(each, each.tables[0], Assumption(seen=SEEN))
        for part in each.tables[0].parts:
            for view in part.views:
                assert shares.by_cell(view).shares.sum() <= 1 + 1e-9


def test_a_forecast_with_densities_is_what_reports_show():
    random = np.random.default_rng(1)
    rows = {
        "uid": np.arange(20_000),
        "v": random.choice(SIZE, 20_000, p=SEEN["p"]["v"]),
        "sex": random.choice(["f", "m"], 20_000),
    }
    collection = dn.Collection(TABLE, epsilon=4.0)
    db = dn.connect(collection.perturb(p=rows, source=dn.SeededSource(1), simulation=True))
    text = "SELECT COUNT(*) FROM p WHERE v < 125"  # nine in ten rows, an eighth of the domain
    plan = planned(collection, text, "optimal", DIRECT, 20_000)
    seen, evenly = (predict(plan, 20_000, assumed)[0].stderr for assumed in (Assumption(seen=SEEN), Assumption()))
    assert seen == pytest.approx(db.sql(text).scalar().stderr, rel=0.1)
    assert evenly < 0.8 * seen
