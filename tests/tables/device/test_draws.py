"""How often a device draws, and below which bounds: the same for all data and all answers, as a stopwatch would see it.

Here with the draws that are really made; `test_user_level_privacy.py` shows it for every outcome of small tables.
"""

import random
from fractions import Fraction

import pytest

import deniable as dn
from deniable.client import Client, ToPLClient
from deniable.exact import SECRET_BITS, discrete_laplace, geometric, secret_below, secret_coin
from deniable.mechanisms import LocalHashing, NoisyMax, Piecewise, RandomizedResponse, SquareWave, StochasticRounding

USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"))
ORDERS = dn.Table("orders", many=3, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c"))
GRIDS = {"orders": [dn.GridView({"amount": dn.Points([0, 7, 500]), "kind": 3}), dn.GridView({"amount": 20}, weight=2)]}


class Script:
    """Draws that lie at given shares of their bounds: the same views and seeds come up as long as bounds agree."""

    def __init__(self, seed):
        self.chance, self.asked = random.Random(seed), []  # noqa: S311 - a script

    def __call__(self, bound):
        self.asked.append(bound)
        return self.chance.getrandbits(256) * bound >> 256


@pytest.mark.parametrize("design", ["hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg", "grid"])
def test_a_device_draws_alike_whatever_it_holds(design):
    grids = {"grids": GRIDS} if design == "grid" else {}
    collection = dn.Collection(USERS, ORDERS, epsilon=4.0, design=design, **grids)
    users = [
        {"age": age, "marital": marital}
        for age in (1, 2, 50, 95, 96, None, "x")
        for marital in ("married", "single", 5)
    ]
    order = {"amount": 7, "kind": "b"}
    orders = [[{"amount": amount, "kind": "c"}] * count for amount in (0, 8, 500, None) for count in (1, 2, 8)]
    orders += [
        [],
        [order],
        [order] * 40,
        [{}],
        [order, {"amount": 3, "kind": None}],
        [{"amount": n, "kind": "a"} for n in range(9)],
    ]
    for seed in range(20):
        for table, data in (("users", [[row] for row in users]), ("orders", orders)):
            traces, public = set(), set()
            for rows in data:
                script = Script(seed)
                sent = Client(collection, randbelow=script).reports(table, rows)
                traces.add(tuple(script.asked))
                public.add(tuple((report.view, report.seed) for report in sent))
            assert len(traces) == len(public) == 1


def test_a_device_of_a_stream_draws_alike_whatever_it_holds():
    values = [0, 1, 7.5, 40, 41, 499, 500, 10**400, -3, float("nan"), None, Fraction(1, 3), "text"]
    for mechanism in ("hybrid", "piecewise", "rounding", "wave"):
        for theta in (None, 40.0):
            for seed in range(20):
                traces = set()
                for value in values:
                    script = Script(seed)
                    ToPLClient(1.0, 500, randbelow=script, mechanism=mechanism).report(value, theta)
                    traces.add(tuple(script.asked))
                assert len(traces) == 1


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (RandomizedResponse(1.0, 5), range(5)),
        (LocalHashing(1.0, 50), range(50)),
        (Piecewise(1.0), (-1.0, -0.3, 0.0, 1.0)),
        (SquareWave(1.0), (0.0, 0.3, 1.0)),
        (StochasticRounding(1.0), (-1.0, -0.3, 0.0, 1.0)),
        (NoisyMax(1.0), ([1, 2, 3], [7, 0, 0])),
    ],
)
def test_a_mechanism_draws_alike_whatever_comes_out(mechanism, values):
    asked, reports = set(), set()
    for seed in range(60):
        for value in values:
            script = Script(seed)
            reports.add(mechanism.perturb_one(value, randbelow=script))
            asked.add(tuple(script.asked))
    assert len(asked) == 1
    assert len(reports) > 1


def test_noise_of_zero_is_drawn_as_other_noise_is():
    drawn = {}
    for seed in range(200):
        script = Script(seed)
        drawn.setdefault(discrete_laplace(Fraction(1, 2), script), []).append(tuple(script.asked))
    assert {0, 1, -1} <= set(drawn)
    assert len({bound for asked in drawn.values() for bound in asked}) == 1
    # One coin for zero, those of the size, and a sign.
    script = Script(0)
    geometric(Fraction(1, 2), script)
    assert len(drawn[0][0]) == len(script.asked) + 2


def test_a_draw_that_depends_on_data_has_one_bound():
    top, third = 2**SECRET_BITS, Fraction(1, 3)
    for count in (1, 3, 10**6):
        script = Script(1)
        assert 0 <= secret_below(count, script) < count
        assert secret_below(count, lambda bound: bound - 1) == count - 1
        assert secret_below(count, lambda _: 0) == 0
        assert script.asked == [top]
    assert secret_coin(third, lambda _: top // 3 - 1)
    assert not secret_coin(third, lambda _: top // 3)
    assert secret_coin(Fraction(1), lambda bound: bound - 1)
    assert not secret_coin(Fraction(0), lambda _: 0)
