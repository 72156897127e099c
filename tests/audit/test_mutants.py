"""Mechanisms, clients and publishers that break their promise in one way each are refuted, and the event says how."""

from fractions import Fraction

import numpy as np
import pytest

from deniable.audit import audit, client_targets, collection_targets
from deniable.audit.mechanism_targets import choice_target, single_target, value_target
from deniable.audit.stream_targets import client_target, published_target
from deniable.collection import Collection
from deniable.exact import fraction_coin
from deniable.mechanisms import DiscreteLaplace, HashedReports, LocalHashing, Piecewise, RandomizedResponse, SquareWave
from deniable.mechanisms.hashing import bucket_array
from deniable.randomness import SeededSource
from deniable.streams import Flat
from deniable.streams.local.stream_client import ToPLClient
from deniable.tables.schema.attributes import Ordinal, Table

ORDERS = Table("orders", many=3, tau=2, amount=Ordinal(0, 9))
LOWEST_HIGHEST, NOTHING_HIGHEST = "lowest or highest", "nothing or highest"


def refuted(target, samples, seed=71):
    finding = audit(target, samples, SeededSource(seed))
    assert finding.refuted, str(finding)
    assert "REFUTED by" in str(finding)
    return str(finding)


def client(pair, path="device", epsilon=2.0, tables=(ORDERS,), **settings):
    """The clients of a small specification."""
    return collection_targets(Collection(*tables, epsilon=epsilon, **settings))[f"{path}, {pair}"](epsilon)


@pytest.fixture
def mutate(monkeypatch):
    """Devices that send what a function makes of an honest client, its table and its rows."""

    def install(reports):
        honest = client_targets._client

        class Mutant:
            def __init__(self, collection, source):
                self._fresh = lambda: honest(collection, source)
                self._client = honest(collection, source)

            def reports(self, table, rows):
                return reports(self._client, self._fresh, table, rows)

        monkeypatch.setattr(client_targets, "_client", Mutant)

    return install


# Mechanisms ----------------------------------------------------------------------------------------------------------


class SeedWithABit(LocalHashing):
    def perturb(self, values, *, source=None, simulation=False):
        seeds = source.seeds(len(values)) & np.uint32(0xFFFFFFFE) | values.astype(np.uint32) & np.uint32(1)
        buckets = bucket_array(seeds, values, self.g)
        return HashedReports(seeds, self.response.perturb(buckets, source=source, simulation=simulation))


def test_a_hash_seed_that_carries_a_bit_of_the_value():
    assert "seed" in refuted(value_target("mutant", SeedWithABit(1.0, 64), (0, 1)), 2_000)


@pytest.mark.parametrize(("honest", "pair"), [(Piecewise, (-1.0, 1.0)), (SquareWave, (0.0, 1.0))])
def test_reports_whose_parity_is_the_value(honest, pair):
    class Parity(honest):
        def perturb(self, values, *, source=None, simulation=False):
            return super().perturb(values, source=source, simulation=simulation) & ~1 | (values > 0)

    assert "bit 0 of y" in refuted(value_target("mutant", Parity(1.0), pair), 2_000)


class CutLaplace(DiscreteLaplace):
    """Noise is drawn again until it lies within the ends."""

    end = 3

    def perturb(self, values, *, source=None, simulation=False):
        noise = source.discrete_laplace(self.scale, len(values))
        while (far := np.abs(noise) > self.end).any():
            noise[far] = source.discrete_laplace(self.scale, int(far.sum()))
        return values + noise


@pytest.mark.parametrize(("end", "samples"), [(3, 20_000), (12, 600_000)])
def test_laplace_tails_that_are_cut(monkeypatch, end, samples):
    monkeypatch.setattr(CutLaplace, "end", end)
    refuted(value_target("mutant", CutLaplace(0.5), (0, 1)), samples)


def test_laplace_noise_that_is_always_even():
    class Even(DiscreteLaplace):
        def perturb(self, values, *, source=None, simulation=False):
            return values + 2 * source.discrete_laplace(self.scale, len(values))

    refuted(value_target("mutant", Even(0.5), (0, 1)), 4_000)


class QuietNoisyMax:
    """Noisy max with 0.8 of its noise, drawn in large batches because one by one takes long."""

    epsilon, scale = 2.0, Fraction(2, 5)

    def __init__(self):
        self._ready = []

    def perturb(self, scores, source, simulation):
        if not self._ready:
            self._ready = list(source.discrete_laplace(self.scale, 4_096 * len(scores)).reshape(-1, len(scores)))
        return int(np.argmax(scores + self._ready.pop()))


def test_noisy_max_with_four_fifths_of_its_noise(monkeypatch):
    refuted(choice_target("mutant", QuietNoisyMax()), 30_000)
    monkeypatch.setattr(QuietNoisyMax, "scale", Fraction(1, 2))
    assert not audit(choice_target("honest", QuietNoisyMax()), 30_000, SeededSource(71)).refuted


def test_one_value_at_a_time_kept_a_tenth_more_often():
    class Keeping(RandomizedResponse):
        def perturb_one(self, value, *, randbelow):
            if fraction_coin(self.p * 11 / 10, randbelow):
                return value
            return (value + 1 + randbelow(self.k - 1)) % self.k

    refuted(single_target("mutant", Keeping(3.0, 4), (0, 1)), 6_000)


# Clients -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("path", "samples"), [("device", 1_500), ("bulk", 4_000)])
def test_a_collection_that_spends_all_of_epsilon_on_each_report(monkeypatch, path, samples):
    monkeypatch.setattr(Collection, "epsilon_per_report", lambda self, name: self.epsilon)
    # A specification that no other test has: designs are cached.
    refuted(client(LOWEST_HIGHEST, path, fanout=9, design="grid", grids=CUT), samples)


def test_a_device_without_rows_that_sends_less(mutate):
    mutate(lambda client, fresh, table, rows: client.reports(table, rows)[: 1 + bool(rows)])
    refuted(client(NOTHING_HIGHEST), 400)


def test_reports_in_an_order_that_follows_the_values(mutate):
    mutate(lambda client, fresh, table, rows: client.reports(table, rows)[:: 1 if rows[0]["amount"] else -1])
    assert "slot" in refuted(client(LOWEST_HIGHEST), 400)


def test_a_view_that_is_drawn_by_the_value(mutate):
    def reports(client, fresh, table, rows):
        """A high value dislikes the coarsest view, and draws once more."""
        first = client.reports(table, rows)
        return fresh().reports(table, rows) if first[0].view == 0 and rows[0]["amount"] else first

    mutate(reports)
    single = Table("orders", amount=Ordinal(0, 9))
    assert "view" in refuted(client(LOWEST_HIGHEST, tables=(single,)), 2_000)


def test_a_device_that_forgets_what_it_sent(mutate):
    mutate(lambda client, fresh, table, rows: fresh().reports(table, rows))
    single = Table("orders", amount=Ordinal(0, 9))
    assert "again" in refuted(client(LOWEST_HIGHEST, tables=(single,), design="grid", grids=CUT), 1_500)


CUT = {"orders": [{"axes": {"amount": {"cells": [0, 5]}}}]}


def test_reports_in_bulk_that_leave_sorted_by_value(monkeypatch):
    honest = Collection.perturb

    def sorted_by_value(self, *, orders, **settings):
        reports = honest(self, orders=orders, **settings)
        high = set(orders.filter(np.asarray(orders["amount"]) > 0)["uid"].to_pylist())
        order = np.argsort([uid in high for uid in reports["orders"]["uid"].to_pylist()], kind="stable")
        return {"orders": reports["orders"].take(order)}

    monkeypatch.setattr(Collection, "perturb", sorted_by_value)
    assert "orders.moved" in refuted(client(LOWEST_HIGHEST, "bulk"), 1_000)


def test_reports_in_bulk_without_users_who_have_no_rows(monkeypatch):
    honest = Collection.perturb

    def without_them(self, *, orders, **settings):
        present = orders.group_by("uid").aggregate([]).select(["uid"])
        return honest(self, orders=orders, **(settings | {"everyone": present}))

    monkeypatch.setattr(Collection, "perturb", without_them)
    refuted(client(NOTHING_HIGHEST, "bulk"), 1_000)


# Streams -------------------------------------------------------------------------------------------------------------


def test_a_stream_client_that_answers_every_threshold_anew(monkeypatch):
    monkeypatch.setattr(ToPLClient, "report", ToPLClient.fresh)
    refuted(client_target("mutant", 2.0, None), 2_600)


class Reusing:
    """Two values of a chunk have the same noise."""

    def __init__(self, *settings, **more):
        self._honest = Flat(*settings, **more)

    def push_many(self, values):
        truth, private = values.reshape(-1, 4), self._honest.push_many(values).reshape(-1, 4)
        private[:, 1] = truth[:, 1] + private[:, 0] - truth[:, 0]
        return private.ravel()


def test_a_publisher_that_uses_noise_twice():
    assert "−" in refuted(published_target("mutant", 2.0, Reusing), 1_000)


def test_a_publisher_whose_last_value_has_a_parity_that_tells():
    class Telling(Reusing):
        def push_many(self, values):
            private = self._honest.push_many(values).reshape(-1, 4)
            private[:, 3] = private[:, 3] & ~1 | (values.reshape(-1, 4) > 2).any(1)
            return private.ravel()

    refuted(published_target("mutant", 2.0, Telling), 1_000)
