"""The exact law of a whole client: run it once for every outcome of its draws, and add up probabilities."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction
from functools import cache
from numbers import Integral

import numpy as np

from deniable.randomness import Source

SEEDS = (0, 2_654_435_769)
"""The seeds that stand for all: each is as likely as the other, and the promise must hold given each."""


def law_of(run):
    """{result: probability} of `run(choose)`, where choose(chances) tells which of several outcomes happens."""
    law, open_paths = defaultdict(Fraction), [((), Fraction(1))]
    while open_paths:
        (path, weight), taken = open_paths.pop(), []  # the weight is that of the whole path

        def choose(chances, path=path, taken=taken):
            nonlocal weight
            if len(taken) < len(path):
                outcome = path[len(taken)]
            else:
                outcome, *others = (outcome for outcome, chance in enumerate(chances) if chance)
                open_paths.extend(((*taken, other), weight * chances[other]) for other in others)
                weight *= chances[outcome]
            taken.append(outcome)
            return outcome

        result = run(choose)
        law[result] += weight
    assert sum(law.values()) == 1
    return dict(law)


@cache
def uniform(count):
    return (Fraction(1, count),) * count


class Drawn:
    """An outcome that is decided when somebody looks at it: a draw that is made for nothing opens no paths."""

    def __init__(self, decide):
        self._decide, self._value = decide, None

    def __index__(self):
        if self._value is None:
            self._value = self._decide()
        return self._value

    numerator, denominator = property(__index__), 1


def _looking(name):
    def operation(self, *others):
        return getattr(int, name)(self.__index__(), *map(int, others))

    return operation


for _operator in ("add", "sub", "mul", "floordiv", "mod", "divmod", "xor", "and", "or", "lshift", "rshift"):
    for _name in (f"__{_operator}__", f"__r{_operator}__"):
        setattr(Drawn, _name, _looking(_name))
for _name in ("__int__", "__bool__", "__hash__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"):
    setattr(Drawn, _name, _looking(_name))
Integral.register(Drawn)


class EnumeratedDevice:
    """Stands in for `secrets.randbelow`, for exact coins of rationals, and for draws that depend on data.

    `asked` lists what was asked for: everything that somebody with a stopwatch could learn about the draws. A coin of
    a public probability is listed with it; one that depends on data asks for the same 128 bits whatever its chance is.
    """

    def __init__(self, choose=None):
        self.begin(choose)

    def begin(self, choose):
        """Another run."""
        self.choose, self.asked = choose, []

    def stand_in(self, monkeypatch, *modules):
        """Replace the draws of modules that make them."""
        for module in modules:
            for name, draw in (("fraction_coin", self.coin), ("secret_coin", self.secret_coin)):
                monkeypatch.setattr(f"deniable.{module}.{name}", draw, raising=False)
            monkeypatch.setattr(f"deniable.{module}.secret_below", self.secret_below, raising=False)

    def randbelow(self, bound):
        self.asked.append(bound)
        if bound == 2**32:
            return Drawn(lambda: SEEDS[self.choose(uniform(len(SEEDS)))])
        assert bound < 100
        return Drawn(lambda: self.choose(uniform(bound)))

    def coin(self, chance, _randbelow):
        self.asked.append(chance)
        return Drawn(lambda: self.choose([1 - chance, Fraction(chance)]))

    def secret_coin(self, chance, _randbelow):
        self.asked.append("128 bits")
        return Drawn(lambda: self.choose([1 - chance, Fraction(chance)]))

    def secret_below(self, count, _randbelow):
        self.asked.append("128 bits")
        return Drawn(lambda: self.choose(uniform(count)))


class EnumeratedSource(Source):
    """Stands in for a source of bulk draws."""

    simulation = True

    def __init__(self, choose):
        super().__init__(bytes(32))
        self.choose = choose

    def below(self, bound, size):
        return np.array([self.choose(uniform(bound)) for _ in range(size)], dtype=np.int64)

    def below_each(self, bounds):
        return np.array([self.choose(uniform(int(bound))) for bound in bounds], dtype=np.int64)

    def bernoulli_each(self, chances, which):
        return np.array([bool(self.choose([1 - chances[i], chances[i]])) for i in which], dtype=bool)

    def ratio_coins(self, numerators, denominator):
        chances = [Fraction(int(n), denominator) for n in numerators]
        return np.array([bool(self.choose([1 - chance, chance])) for chance in chances], dtype=bool)

    def seeds(self, size):
        return np.array([SEEDS[self.choose(uniform(len(SEEDS)))] for _ in range(size)], dtype=np.uint32)

    def words(self, size):
        orders = list(itertools.permutations(range(size)))
        return np.array(orders[self.choose(uniform(len(orders)))], dtype=np.uint64)
