"""How fast every mechanism perturbs and estimates, next to its peers on the same data in the same run."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numba
import numpy as np

from deniable.arrays import Integers
from deniable.errors import Failure
from deniable.mechanisms import (
    CauchyNoise,
    DiscreteLaplace,
    GaussianNoise,
    HashedReports,
    Hybrid,
    LaplaceNoise,
    LocalHashing,
    NoisyMax,
    PAKThreshold,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SmoothPercentile,
    SquareWave,
    StochasticRounding,
)
from deniable.mechanisms._support import hash_cell
from deniable.mechanisms.hashing import cell_keys
from deniable.mechanisms.reconstruction import LARGEST_STEPS

EPSILON = 1.0
CELLS, FEW_CELLS = 1024, 16
USERS = 1_000_000
EM_REPORTS = 65_536
PEER_USERS, PEER_REPORTS, PEER_DRAWS = 10_000, 200, 20_000


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was timed: so many units per second, and how many a peer does."""

    mechanism: str
    step: str
    unit: str
    rate: float
    peer: str = ""
    peer_rate: float = float("nan")
    target: float = float("nan")
    """The smallest ratio of the two rates that is good enough."""

    @property
    def ratio(self) -> float:
        """How many times the peer's speed."""
        return self.rate / self.peer_rate

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None if there is none."""
        return None if np.isnan(self.target) else self.ratio >= self.target


def measure() -> Iterator[Row]:
    """All rows, one after the other. Data are skewed cell numbers and numbers in [0, 1], the same for everybody."""
    peers = _peers()
    rng = np.random.default_rng(2020)  # data only; noise is from the secure source
    cells = np.minimum(rng.geometric(0.01, USERS) - 1, CELLS - 1)
    numbers = np.clip(rng.gamma(2.0, 0.08, USERS), 0.0, 1.0)

    yield from _hashing("LocalHashing", LocalHashing(EPSILON, CELLS), cells, peers)
    yield from _hashing("LocalHashing g=2", LocalHashing.binary(EPSILON, CELLS), cells, peers)
    yield from _response(cells % FEW_CELLS, peers)
    for mechanism in (
        StochasticRounding(EPSILON, 0.0, 1.0),
        Piecewise(EPSILON, 0.0, 1.0),
        Hybrid(EPSILON, 0.0, 1.0),
        SquareWave(EPSILON),
    ):
        name = type(mechanism).__name__
        rate, reports = _rate(partial(mechanism.perturb, numbers), USERS)
        yield Row(name, "perturb", "values", rate)
        if isinstance(mechanism, SquareWave):
            yield from _reconstruction(mechanism, mechanism.perturb(numbers[:EM_REPORTS]))
        else:
            yield Row(name, "estimate", "reports", _rate(partial(mechanism.estimate, reports), USERS)[0])
    yield from _laplace(peers)
    scores = rng.integers(0, 1000, USERS)
    for choice in (NoisyMax(EPSILON), PermuteAndFlip(EPSILON)):
        yield Row(type(choice).__name__, "perturb", "scores", _rate(partial(choice.perturb, scores), USERS)[0])
    values = rng.geometric(0.1, EM_REPORTS)
    for noise, delta in ((LaplaceNoise(), 1e-12), (GaussianNoise(), 1e-12), (CauchyNoise(), 0.0)):
        smooth = SmoothPercentile(EPSILON, bound=1638, percentile=0.995, delta=delta, noise=noise)
        name = f"Smooth {type(noise).__name__.removesuffix('Noise')}"
        yield Row(name, "perturb", "values", _rate(partial(smooth.perturb, values), EM_REPORTS)[0])
    pak = PAKThreshold(EPSILON, bound=1638, delta=1e-12)
    yield Row("PAKThreshold", "perturb", "values", _rate(lambda: pak.perturb(values), EM_REPORTS)[0])


def _hashing(name: str, mechanism: LocalHashing, cells: Integers, peers: Any) -> Iterator[Row]:
    optimal = mechanism.buckets is None
    rate, reports = _rate(lambda: mechanism.perturb(cells), USERS)
    few = (cells[:PEER_USERS] + 1).tolist()
    client = peers.LHClient(EPSILON, CELLS, use_olh=optimal)
    theirs, sent = _rate(lambda: [client.privatise(cell) for cell in few], PEER_USERS, repeats=1)
    yield Row(name, "perturb", "values", rate, "pure-ldp", theirs, target=10)
    theirs, also_sent = _rate(
        lambda: [peers.LH_Client(cell - 1, CELLS, EPSILON, optimal=optimal) for cell in few], PEER_USERS, repeats=1
    )
    yield Row(name, "perturb", "values", rate, "multi-freq", theirs)

    pairs, peer_pairs = USERS * CELLS, PEER_REPORTS * CELLS
    mechanism.estimate(HashedReports(reports.seeds[:10], reports.buckets[:10]))  # compile
    rate, _ = _rate(lambda: mechanism.estimate(reports), pairs)
    (keys, factors), buckets = cell_keys(np.arange(CELLS)), reports.buckets.astype(np.uint64)
    _bare_loop(reports.seeds[:10], buckets[:10], np.uint64(mechanism.g), keys, factors)  # compile
    theirs, _ = _rate(lambda: _bare_loop(reports.seeds, buckets, np.uint64(mechanism.g), keys, factors), pairs)
    yield Row(name, "estimate", "pairs", rate, "bare loop", theirs, target=1 / 3)
    theirs, _ = _rate(lambda: _pure_ldp_estimate(peers, sent[:PEER_REPORTS], optimal), peer_pairs, repeats=1)
    yield Row(name, "estimate", "pairs", rate, "pure-ldp", theirs, target=500)
    theirs, _ = _rate(
        lambda: peers.LH_Aggregator_MI(also_sent[:PEER_REPORTS], CELLS, EPSILON, optimal=optimal), peer_pairs, repeats=1
    )
    yield Row(name, "estimate", "pairs", rate, "multi-freq", theirs)


def _response(cells: Integers, peers: Any) -> Iterator[Row]:
    name, mechanism = "RandomizedResponse", RandomizedResponse(EPSILON, FEW_CELLS)
    rate, reports = _rate(lambda: mechanism.perturb(cells), USERS)
    few = (cells[:PEER_USERS] + 1).tolist()
    client = peers.DEClient(EPSILON, FEW_CELLS)
    theirs, sent = _rate(lambda: [client.privatise(cell) for cell in few], PEER_USERS, repeats=1)
    yield Row(name, "perturb", "values", rate, "pure-ldp", theirs)
    theirs, also_sent = _rate(
        lambda: [peers.GRR_Client(cell - 1, FEW_CELLS, EPSILON) for cell in few], PEER_USERS, repeats=1
    )
    yield Row(name, "perturb", "values", rate, "multi-freq", theirs)
    rate, _ = _rate(lambda: mechanism.estimate(reports), USERS)
    server, domain = peers.DEServer(EPSILON, FEW_CELLS), range(1, FEW_CELLS + 1)
    theirs, _ = _rate(
        lambda: ([server.aggregate(report) for report in sent], server.estimate_all(domain)), PEER_USERS, repeats=1
    )
    yield Row(name, "estimate", "reports", rate, "pure-ldp", theirs)
    theirs, _ = _rate(lambda: peers.GRR_Aggregator_MI(also_sent, FEW_CELLS, EPSILON), PEER_USERS, repeats=1)
    yield Row(name, "estimate", "reports", rate, "multi-freq", theirs)


def _reconstruction(wave: SquareWave, reports: Integers) -> Iterator[Row]:
    for smooth, name in ((False, "EM"), (True, "EMS")):
        rate, result = _rate(partial(wave.reconstruct, reports, CELLS, smooth=smooth), EM_REPORTS)
        few = min(result.steps, 100)
        theirs, _ = _rate(partial(_dense_steps, wave, reports, few, smooth=smooth), EM_REPORTS, repeats=1)
        yield Row("SquareWave", name, "reports", rate, "dense matrix", theirs * few / result.steps, target=10)


def _laplace(peers: Any) -> Iterator[Row]:
    zeros = np.zeros(USERS, dtype=np.int64)
    mechanism = DiscreteLaplace(1e-5)
    rate, noisy = _rate(lambda: mechanism.perturb(zeros), USERS)
    sampler = peers.opendp_laplace(1e5)
    theirs, _ = _rate(lambda: sampler([0] * PEER_DRAWS), PEER_DRAWS, repeats=1)
    yield Row("DiscreteLaplace", "perturb", "values", rate, "OpenDP", theirs, target=30)
    yield Row("DiscreteLaplace", "estimate", "reports", _rate(lambda: mechanism.estimate(noisy), USERS)[0])


def _rate(work: Callable[[], Any], units: int, repeats: int = 3) -> tuple[float, Any]:
    """Units per second in the best of a few runs, and the last result."""
    best, result = float("inf"), None
    for _ in range(repeats):
        start = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - start)
    return units / best, result


@numba.njit(parallel=True)  # type: ignore[untyped-decorator, unused-ignore]
def _bare_loop(seeds: Any, buckets: Any, g: np.uint64, keys: Any, factors: Any) -> Any:
    """What anybody would write first: for every cell, hash under every seed and compare."""
    counts = np.zeros(keys.size, dtype=np.int64)
    for cell in numba.prange(keys.size):
        hits = 0
        for report in range(seeds.size):
            hashed = np.uint64(hash_cell(seeds[report], keys[cell], factors[cell]))
            hits += ((hashed * g) >> np.uint64(32)) == buckets[report]
        counts[cell] = hits
    return counts


def _dense_steps(wave: SquareWave, reports: Integers, steps: int, *, smooth: bool) -> Any:
    """The same EM with the transition matrix written out, as published implementations do."""
    window = wave.window
    size = window.inputs // CELLS
    inside, outside = map(float, window.weights)
    outputs = -(-window.outputs // size)
    starts = size * np.arange(CELLS) + size / 2
    edges = size * np.arange(outputs + 1)
    overlap = np.clip(
        np.minimum(edges[1:, None], starts + window.width) - np.maximum(edges[:-1, None], starts), 0, None
    )
    matrix = outside * size + (inside - outside) * overlap
    counts = np.bincount(reports // size, minlength=outputs)
    shares = np.full(CELLS, 1 / CELLS)
    for _ in range(min(steps, LARGEST_STEPS)):
        shares = shares * (matrix.T @ (counts / (matrix @ shares)))
        if smooth:
            shares = np.convolve(np.pad(shares, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
        shares /= shares.sum()
    return shares


class _Peers:
    """The peers' classes and functions, imported together so that one is not measured without the others."""

    def __init__(self) -> None:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
        from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
        from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
        from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

        self.LHClient, self.LHServer, self.DEClient, self.DEServer = LHClient, LHServer, DEClient, DEServer
        self.LH_Client, self.LH_Aggregator_MI, self.GRR_Client = LH_Client, LH_Aggregator_MI, GRR_Client
        self.GRR_Aggregator_MI = GRR_Aggregator_MI
        LH_Client(0, CELLS, EPSILON, optimal=True)  # both compile on first use
        GRR_Client(0, FEW_CELLS, EPSILON)

    @staticmethod
    def opendp_laplace(scale: float) -> Any:
        import opendp.prelude as dp

        dp.enable_features("contrib")
        return dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=scale)


def _peers() -> _Peers:
    try:
        return _Peers()
    except ImportError as error:
        raise Failure(
            f"this needs the package {error.name or 'pure-ldp'!r}, which is not installed. Nothing was measured. "
            "Run: pip install './lab[peers]' in a checkout."
        ) from None


def _pure_ldp_estimate(peers: _Peers, sent: list[Any], optimal: bool) -> Any:
    server = peers.LHServer(EPSILON, CELLS, use_olh=optimal)
    for report in sent:
        server.aggregate(report)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that so few reports give bad estimates; only the time matters here
        return server.estimate_all(range(1, CELLS + 1))
