"""The promise of each kind of rounds: the whole client, enumerated over three rounds and all pairs of lifetimes."""

import itertools
import math
from fractions import Fraction

import pytest

import deniable as dn
from deniable.client import Client
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.tables.device import client as device
from tables.enumeration import Drawn, EnumeratedDevice, law_of, uniform

MODULES = ("tables.device.randomising", "mechanisms.randomized_response", "mechanisms.memoised_response")
FLAG = dn.Table("users", flag=dn.Categorical("a", "b"))
LIFETIMES = list(itertools.product("ab", repeat=3))
GRID = 2
"""A sticky number is one of so many, each as likely as the others: enough for up to two rows."""


class _Labelled:
    """Draws under a label: asked again under it, the same come out."""

    def __init__(self, dice, label):
        self.dice, self.label, self.count = dice, label, 0

    def __call__(self, bound):
        return self.decided(lambda: self.dice.randbelow(bound))

    def decided(self, decide):
        self.count += 1
        return self.dice.kept.setdefault((self.label, self.count), Drawn(lambda: int(decide())))


class StickyDevice(EnumeratedDevice):
    """Draws of a device whose secret is enumerated by what it decides: turns, and everything that is kept for life."""

    def __init__(self, choose):
        super().__init__(choose)
        self.kept = {}

    def stand_in(self, monkeypatch, *modules):
        super().stand_in(monkeypatch, *modules)
        monkeypatch.setattr(device, "StickyDraws", lambda _: self)
        monkeypatch.setattr(device, "turns_of", self.turns)

    def of(self, label):
        return _Labelled(self, label)

    def randbelow(self, bound):
        return 0 if bound == 2**256 else super().randbelow(bound)

    def turns(self, rounds, _prefix, _user):
        choices = list(itertools.combinations(range(1, rounds.count + 1), rounds.answers))
        chosen = self.kept.setdefault("turns", Drawn(lambda: self.choose(uniform(len(choices)))))
        return choices[int(chosen)]

    def coin(self, chance, draws):
        fresh = super().coin(chance, draws)
        return draws.decided(lambda: fresh) if isinstance(draws, _Labelled) else fresh

    def _fine(self, draws):
        return draws.decided(lambda: self.choose(uniform(GRID)))

    def secret_coin(self, chance, draws):
        if isinstance(draws, _Labelled):
            return self._fine(draws) < chance * GRID
        return super().secret_coin(chance, draws)

    def secret_below(self, count, draws):
        if isinstance(draws, _Labelled):
            return self._fine(draws) * count // GRID
        return super().secret_below(count, draws)


def client_law(monkeypatch, collection, lifetime, table="users", user=None):
    """The law of everything that a client sends in all rounds, given its rows in each."""

    def run(choose):
        dice = StickyDevice(choose)
        dice.stand_in(monkeypatch, *MODULES)
        client = Client(collection, randbelow=dice.randbelow, user=user)
        sent = [client.reports(table, rows, number) for number, rows in enumerate(lifetime, 1)]
        again = [client.reports(table, lifetime[0], number) for number in range(1, len(lifetime) + 1)]
        assert again == sent  # a round asked twice repeats its bytes, whatever the row is now
        return tuple(b"".join(report.to_bytes() for report in reports) for reports in sent)

    return law_of(run)


def flags(lifetime):
    return [[{"flag": flag}] for flag in lifetime]


def worst_ratio(laws):
    outcomes = set().union(*laws)
    assert all(set(law) == outcomes for law in laws)
    return max(max(law[o] for law in laws) / min(law[o] for law in laws) for o in outcomes)


def marginal(law, index):
    alone = {}
    for outcome, chance in law.items():
        alone[outcome[index]] = alone.get(outcome[index], 0) + chance
    return alone


def shop(epsilon, rounds, **settings):
    return dn.Collection(FLAG, epsilon=epsilon, design="mg", name="shop", rounds=rounds, **settings)


@pytest.mark.parametrize("cover", [False, True])
@pytest.mark.parametrize("answers", [1, 2])
def test_rotating_spends_epsilon_over_a_lifetime_and_reaches_it(monkeypatch, answers, cover):
    collection = shop(1.5, dn.Rounds(3, answers=answers, cover=cover))
    laws = [client_law(monkeypatch, collection, flags(life)) for life in LIFETIMES]
    response = RandomizedResponse(1.5 / answers, 2)
    assert worst_ratio(laws) == (response.p / response.q) ** answers
    assert collection.spends.epsilon == Fraction(1.5)
    for law in laws:
        for outcome in law:  # in how many rounds she answers, and how long that is, is public
            assert sum(bool(part) for part in outcome) == (3 if cover else answers)
            assert {len(part) for part in outcome} == ({32} if cover else {0, 32})
    # Which rounds are hers says nothing: each choice is as likely as another, whatever her values are.
    hers = {tuple(map(bool, outcome)) for outcome in laws[0]} if not cover else set()
    for choice, law in itertools.product(hers, laws):
        mine = [chance for outcome, chance in law.items() if tuple(map(bool, outcome)) == choice]
        assert sum(mine) == Fraction(1, math.comb(3, answers))


def test_fresh_spends_epsilon_in_every_round_and_reaches_it(monkeypatch):
    collection = shop(0.7, dn.Rounds(3, mode="fresh"))
    laws = [client_law(monkeypatch, collection, flags(life)) for life in LIFETIMES]
    response = RandomizedResponse(0.7, 2)
    assert worst_ratio(laws) == (response.p / response.q) ** 3
    assert collection.spends.epsilon == 3 * Fraction(0.7)


def pattern(lifetime):
    return tuple(lifetime.index(value) for value in lifetime)


@pytest.mark.parametrize(("epsilon", "permanent"), [(0.75, 1.5), (1.4, 1.5), (0.5, 4.0)])
def test_memoised_keeps_its_three_promises(monkeypatch, epsilon, permanent):
    rounds = dn.Rounds(3, mode="memoised", permanent=permanent, changes_are_public=True)
    collection = shop(epsilon, rounds)
    laws = {life: client_law(monkeypatch, collection, flags(life)) for life in LIFETIMES}
    mechanism = MemoisedResponse(epsilon, permanent, 2)
    # One round alone: ε, reached.
    alone = RandomizedResponse(epsilon, 2)
    for index in range(3):
        assert worst_ratio([marginal(law, index) for law in laws.values()]) == alone.p / alone.q
    # Changes in the same rounds: d·ε∞.
    for group in {pattern(life) for life in LIFETIMES}:
        alike = [law for life, law in laws.items() if pattern(life) == group]
        visited = len(set(group))
        assert math.log(worst_ratio(alike)) <= visited * permanent + 1e-12
    # Any two lifetimes: enumerated, reached, and what a ledger charges.
    worst = math.log(worst_ratio(list(laws.values())))
    promised = float(mechanism.any_lifetimes(3))
    assert worst <= promised <= worst + 1e-8
    assert collection.spends.epsilon == mechanism.any_lifetimes(3)
    # The usual claim, min(g, rounds)·ε∞ for any two lifetimes, does not hold in general.
    if (epsilon, permanent) == (1.4, 1.5):
        assert worst > 2 * permanent


def test_few_buckets_keep_the_same_promises(monkeypatch):
    """Three cells in two buckets: the promises are those of two outcomes, and lifetimes within a bucket are alike."""
    rounds = dn.Rounds(2, mode="memoised", permanent=1.5, changes_are_public=True, buckets=2)
    table = dn.Table("users", flag=dn.Categorical("a", "b", "c"))
    collection = dn.Collection(table, epsilon=1.4, design="mg", coins="assigned", name="shop", rounds=rounds)
    oracle = collection.design_of("users").oracle(3)
    assert (oracle.g, oracle.outcomes) == (2, 2)
    lifetimes = list(itertools.product("abc", repeat=2))
    laws = {life: client_law(monkeypatch, collection, flags(life), user="cyd") for life in lifetimes}
    mechanism, alone = MemoisedResponse(1.4, 1.5, 2), RandomizedResponse(1.4, 2)
    for index in range(2):
        assert worst_ratio([marginal(law, index) for law in laws.values()]) == alone.p / alone.q
    worst = math.log(worst_ratio(list(laws.values())))
    assert worst <= float(mechanism.any_lifetimes(2)) <= worst + 1e-8
    assert collection.spends.epsilon == mechanism.any_lifetimes(2)
    assert len({tuple(sorted(law.items())) for law in laws.values()}) == 4  # two buckets in each of two rounds


def test_the_usual_claim_about_memoised_answers_is_wrong():
    mechanism = MemoisedResponse(1.4, 1.5, 4)
    assert float(mechanism.any_lifetimes(3)) == pytest.approx(7.386, abs=1e-3)
    assert mechanism.same_changes(3) == Fraction(4.5)
    quieter = MemoisedResponse(0.75, 1.5, 4)
    assert float(quieter.any_lifetimes(3)) == pytest.approx(2.869, abs=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "permanent", "k", "rounds"), [(1.4, 1.5, 3, 3), (1.0, 2.0, 2, 4), (0.5, 0.6, 4, 2)]
)
def test_the_enumeration_finds_the_worst_of_all_pairs(epsilon, permanent, k, rounds):
    mechanism = MemoisedResponse(epsilon, permanent, k)
    lifetimes = list(itertools.product(range(k), repeat=rounds))
    laws = [[mechanism.law(life, answers) for answers in lifetimes] for life in lifetimes]
    assert all(sum(law) == 1 for law in laws)
    worst = max(math.log(max(column) / min(column)) for column in zip(*laws, strict=True))
    assert worst <= float(mechanism.any_lifetimes(rounds)) <= worst + 1e-8
    # Each further round adds at most ε_i, so the bound beyond the enumerated rounds holds too.
    step = float(mechanism.instantaneous_epsilon)
    shorter = float(mechanism.any_lifetimes(rounds - 1))
    assert worst <= shorter + step
    assert float(mechanism.any_lifetimes(20)) == pytest.approx(float(mechanism.any_lifetimes(4)) + 16 * step)
    kept, alone = mechanism.kept, mechanism.alone
    assert kept.p * mechanism.p_instantaneous + (1 - kept.p) * mechanism.q_instantaneous == alone.p


@pytest.mark.slow
def test_rows_and_rounding_stay_the_same_for_life(monkeypatch):
    """Somebody whose rows never change has one permanent answer, however many rows there are to choose from."""
    orders = dn.Table("orders", many=2, kind=dn.Categorical("x", "y"))
    rounds = dn.Rounds(2, mode="memoised", permanent=1.5, changes_are_public=True)
    collection = dn.Collection(orders, epsilon=0.75, design="mg", name="shop", rounds=rounds)
    people = [[{"kind": kind} for kind in kinds] for kinds in ("", "x", "xy", "yy")]
    laws = [client_law(monkeypatch, collection, [rows, rows], "orders") for rows in people]
    assert math.log(worst_ratio(laws)) <= 1.5
    assert {len(part) for law in laws for outcome in law for part in outcome} == {32}
