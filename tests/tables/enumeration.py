"""The exact law of a whole client: run it once for every outcome of its draws, and add up probabilities."""

from __future__ import annotations

import itertools
from collections import defaultdict
from fractions import Fraction

import numpy as np

from deniable.randomness import Source

SEEDS = (0, 2_654_435_769)
"""The seeds that stand for all: each is as likely as the other, and the promise must hold given each."""


def law_of(run):
    """{result: probability} of `run(choose)`, where choose(chances) tells which of several outcomes happens."""
    law, open_paths = defaultdict(Fraction), [()]
    while open_paths:
        path, taken, weight = open_paths.pop(), [], Fraction(1)

        def choose(chances, path=path, taken=taken):
            nonlocal weight
            possible = [place for place, chance in enumerate(chances) if chance]
            if len(taken) < len(path):
                place = path[len(taken)]
            else:
                place = possible[0]
                open_paths.extend((*taken, other) for other in possible[1:])
            taken.append(place)
            weight *= chances[place]
            return place

        result = run(choose)
        law[result] += weight
    assert sum(law.values()) == 1
    return dict(law)


def uniform(count):
    return [Fraction(1, count)] * count


class EnumeratedDevice:
    """Stands in for `secrets.randbelow` and for exact coins of rationals."""

    def __init__(self, choose):
        self.choose = choose

    def randbelow(self, bound):
        if bound == 2**32:
            return SEEDS[self.choose(uniform(len(SEEDS)))]
        assert bound < 100
        return self.choose(uniform(bound))

    def coin(self, chance, _randbelow):
        return bool(self.choose([1 - chance, Fraction(chance)]))


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
