"""Rounds in bulk, enumerated: the whole run over three rounds has the law of devices, for all pairs of lifetimes."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.collecting import round_asking
from deniable.engines.collecting.perturbing import reports_of
from deniable.engines.collecting.round_asking import Asking
from deniable.engines.collecting.row_counts import Tally
from deniable.engines.collecting.sorted_rows import PRESENT
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.tables.bulk import memoised_bulk
from deniable.tables.coins.coin_columns import CoinColumns
from deniable.tables.coins.turns import SECRET_BYTES
from tables.enumeration import EnumeratedSource, law_of, uniform

FLAG = dn.Table("users", flag=dn.Categorical("a", "b"))
LIFETIMES = list(itertools.product("ab", repeat=3))
GRID = 2
"""A sticky number is one of so many, each as likely as the others: enough for up to two rows."""


class GoodRows(EnumeratedSource):
    """Draws for rows that can all be reported: those that would replace them open no paths."""

    def below(self, bound, size):
        return np.zeros(size, dtype=np.int64)


class StickyWords:
    """Stands in for SHA-256 of a secret: what is asked for twice comes out the same."""

    def __init__(self, choose, kept, k, *, rows):
        self.choose, self.kept, self.k, self.rows, self.known = choose, kept, k, rows, {}

    def coins(self, prefix, users, slots):
        purpose = prefix[SECRET_BYTES : SECRET_BYTES + 24].rstrip(b"\0")
        words = [self._word(prefix, purpose, *key) for key in zip(users.to_pylist(), slots.tolist(), strict=True)]
        group, view = (np.array([word[index] for word in words], dtype=np.uint64) for index in (0, 1))
        return CoinColumns(group, view, np.zeros(len(words), dtype=np.uint64))

    def _word(self, prefix, purpose, user, slot):
        key = (prefix, user, slot)
        if key not in self.known:
            if purpose == b"deniable answers":
                self.known[key] = self.choose([self.kept.p, *[self.kept.q] * (self.k - 1)])
            else:
                self.known[key] = self.choose(uniform(GRID)) if self.rows else 0
        drawn = self.known[key]
        if purpose != b"deniable answers":
            return drawn * 2**64 // GRID, 0
        return 0 if drawn == 0 else 2**64 - 1, (max(drawn, 1) - 1) * 2**64 // (self.k - 1) + 1

    def turns(self, rounds, _prefix, users):
        choices = list(itertools.combinations(range(1, rounds.count + 1), rounds.answers))
        if "turns" not in self.known:
            self.known["turns"] = self.choose(uniform(len(choices)))
        return np.array([choices[self.known["turns"]]] * len(users))


def bulk_law(monkeypatch, collection, lifetime, kept=None, k=2):
    """The law of everything that a run in bulk says about one user in all rounds, given her rows in each."""
    (table,) = collection.tables

    def run(choose):
        words = StickyWords(choose, kept, k, rows=table.many is not None)
        monkeypatch.setattr(memoised_bulk, "secret_coins", words.coins)
        monkeypatch.setattr(round_asking, "secret_coins", words.coins)
        monkeypatch.setattr(round_asking, "turn_columns", words.turns)
        sent = []
        for number, rows in enumerate(lifetime, 1):
            asking = Asking(collection, number, bytes(SECRET_BYTES))
            columns = reports_of(asking, table.name, rows, GoodRows(choose), Tally())
            sent.append(tuple(zip(*(column.to_pylist() for column in columns[1:]), strict=True)))
        return tuple(sent)

    return law_of(run)


def flags(lifetime):
    return [pa.table({"uid": ["ann"], "flag": [flag]}) for flag in lifetime]


def shop(epsilon, rounds):
    return dn.Collection(FLAG, epsilon=epsilon, design="mg", name="shop", rounds=rounds)


def worst_ratio(laws):
    outcomes = set().union(*laws)
    assert all(set(law) == outcomes for law in laws)
    return max(max(law[o] for law in laws) / min(law[o] for law in laws) for o in outcomes)


@pytest.mark.parametrize("answers", [1, 2])
def test_rotating_spends_epsilon_over_a_lifetime_and_reaches_it(monkeypatch, answers):
    collection = shop(1.5, dn.Rounds(3, answers=answers))
    laws = [bulk_law(monkeypatch, collection, flags(life)) for life in LIFETIMES]
    response = RandomizedResponse(1.5 / answers, 2)
    assert worst_ratio(laws) == (response.p / response.q) ** answers
    for choice, law in itertools.product(itertools.combinations(range(3), answers), laws):
        mine = [chance for sent, chance in law.items() if tuple(np.flatnonzero(list(map(len, sent)))) == choice]
        assert sum(mine) == Fraction(1, math.comb(3, answers))  # whose turn it is says nothing


def test_fresh_spends_epsilon_in_every_round_and_reaches_it(monkeypatch):
    laws = [bulk_law(monkeypatch, shop(0.7, dn.Rounds(3, mode="fresh")), flags(life)) for life in LIFETIMES]
    response = RandomizedResponse(0.7, 2)
    assert worst_ratio(laws) == (response.p / response.q) ** 3


@pytest.mark.parametrize(("epsilon", "permanent"), [(0.75, 1.5), (1.4, 1.5)])
def test_memoised_rounds_have_the_law_of_the_mechanism(monkeypatch, epsilon, permanent):
    collection = shop(epsilon, dn.Rounds(3, mode="memoised", permanent=permanent, changes_are_public=True))
    mechanism = MemoisedResponse(epsilon, permanent, 2)
    laws = [bulk_law(monkeypatch, collection, flags(life), mechanism.kept) for life in LIFETIMES]
    for life, law in zip(LIFETIMES, laws, strict=True):
        outcomes = tuple("ab".index(flag) for flag in life)
        answers = {tuple(report[3] for ((*report,),) in sent): chance for sent, chance in law.items()}
        expected = itertools.product(range(2), repeat=3)
        assert answers == {each: mechanism.law(outcomes, each) for each in expected}
    worst = math.log(worst_ratio(laws))
    assert worst <= float(collection.spends.epsilon) <= worst + 1e-8


@pytest.mark.slow
def test_rows_and_rounding_stay_the_same_for_life_in_bulk(monkeypatch):
    """Somebody whose rows never change has one permanent answer, in whatever order her rows come."""
    orders = dn.Table("orders", many=2, kind=dn.Categorical("x", "y"))
    rounds = dn.Rounds(2, mode="memoised", permanent=1.5, changes_are_public=True)
    collection = dn.Collection(orders, epsilon=0.75, design="mg", name="shop", rounds=rounds)
    (view,) = collection.design_of("orders")
    kept = MemoisedResponse(view.oracle.epsilon, 1.5, view.oracle.outcomes).kept

    def person(kinds):
        kind = list(kinds) or [None]
        present = pa.array([True if kinds else None] * len(kind), pa.bool_())
        return pa.table({"uid": ["ann"] * len(kind), "kind": pa.array(kind, pa.string()), PRESENT: present})

    lives = [(person(kinds), person(kinds[::-1])) for kinds in ("", "x", "xy", "yy")]
    laws = [bulk_law(monkeypatch, collection, life, kept, view.oracle.outcomes) for life in lives]
    assert math.log(worst_ratio(laws)) <= 1.5
    assert {len(part) for law in laws for outcome in law for part in outcome} == {1}
