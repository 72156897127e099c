"""The same job by us and by others: the same data, the same ε, error and time side by side.

Jobs that several libraries do: counts of categories without trust, marginals of several attributes, noise on counts,
percentiles, and sums over ranges from noisy trees. Ours draw from the secure source, as releases do. A peer that is not
installed is named, and the others are measured.
"""

from __future__ import annotations

import importlib
import math
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from deniable.mechanisms import DiscreteLaplace, LocalHashing, NoisyMax, RandomizedResponse, SmoothPercentile
from deniable.streams import PublicThreshold, ToPS

PEERS = {
    "pure-ldp": "pure_ldp",
    "multi-freq": "multi_freq_ldpy",
    "diffprivlib": "diffprivlib",
    "OpenDP": "opendp.prelude",
    "PyDP": "pydp",
}
Work = Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Job:
    """One job: the true answers, how we answer, and how peers do."""

    name: str
    truth: Any
    ours: Work
    peers: Mapping[str, Callable[[], Work]] = field(default_factory=dict)
    """By peer: what prepares its work. Imports happen there, so that one may be missing."""
    after: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict)
    """What a peer does to its answers afterwards, which is then done to ours too before it is compared."""


@dataclass(frozen=True, slots=True)
class Row:
    """How a peer compares in one run: its root mean square error as a multiple of ours, and both times."""

    job: str
    peer: str
    error: float
    doubt: float
    """Relative standard error of the ratio of errors."""
    seconds: float
    """Ours."""
    peer_seconds: float

    @property
    def time(self) -> float:
        """The time of the peer as a multiple of ours."""
        return self.peer_seconds / self.seconds


def missing() -> dict[str, str]:
    """Peers that cannot be imported, and why."""
    absent = {}
    for peer, module in PEERS.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                importlib.import_module(module)
        except ImportError as error:
            absent[peer] = f"no module {error.name!r}" if isinstance(error, ModuleNotFoundError) else "import failed"
    return absent


def measure(absent: dict[str, str], repetitions: int = 8) -> Iterator[Row]:
    """All comparisons that can be made."""
    for job in jobs():
        present = {peer: make for peer, make in job.peers.items() if peer.partition(",")[0] not in absent}
        if not present:
            continue
        ours, seconds = _repeat(job.ours, repetitions)
        for peer, make in present.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about few reports, and about bounds that are public here
                theirs, peer_seconds = _repeat(make(), repetitions)
            alike = [job.after[peer](answers) for answers in ours] if peer in job.after else ours
            mine, other = _squares(alike, job.truth), _squares(theirs, job.truth)
            doubt = 0.5 * math.hypot(_relative(mine), _relative(other))
            yield Row(job.name, peer, math.sqrt(other.mean() / mine.mean()), doubt, seconds, peer_seconds)


def by_comparison(rows: Iterable[Row]) -> list[tuple[Row, ...]]:
    """The rows of several runs, those of the same job and peer together, in the order of the first run."""
    together: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        together.setdefault((row.job, row.peer), []).append(row)
    return [tuple(runs) for runs in together.values()]


def count() -> int:
    """How many comparisons there are when nothing is missing."""
    return sum(len(job.peers) for job in jobs())


def jobs() -> Iterator[Job]:
    """All jobs, on data that are drawn once."""
    yield _few_categories()
    yield _many_categories()
    yield _marginals()
    yield _noise()
    yield from _percentiles()
    for fanout in (2, 16):
        yield _ranges(fanout)


def _few_categories(users: int = 20_000, k: int = 16, epsilon: float = 1.0) -> Job:
    values = np.minimum(np.random.default_rng(1).geometric(0.2, users) - 1, k - 1)

    def pure_ldp() -> tuple[Any, Any]:
        from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer

        return DEClient(epsilon, k), DEServer(epsilon, k)

    def multi_freq() -> tuple[Any, Any]:
        from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client

        return GRR_Client, GRR_Aggregator_MI

    return _counts(f"{k} counts, response", values, RandomizedResponse(epsilon, k), pure_ldp, multi_freq)


def _many_categories(users: int = 10_000, k: int = 128, epsilon: float = 1.0) -> Job:
    values = np.minimum(np.random.default_rng(2).geometric(0.05, users) - 1, k - 1)

    def pure_ldp() -> tuple[Any, Any]:
        from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer

        return LHClient(epsilon, k, use_olh=True), LHServer(epsilon, k, use_olh=True)

    def multi_freq() -> tuple[Any, Any]:
        from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client

        return LH_Client, LH_Aggregator_MI

    return _counts(f"{k} counts, hashing", values, LocalHashing(epsilon, k), pure_ldp, multi_freq)


def _counts(
    name: str,
    values: Any,
    mechanism: Any,
    pure_ldp: Callable[[], tuple[Any, Any]],
    multi_freq: Callable[[], tuple[Any, Any]],
) -> Job:
    """How many users have each category: by our mechanism, and by clients and servers that peers make of the same."""
    users, plain, k, epsilon = values.size, values.tolist(), mechanism.k, mechanism.epsilon

    def by_pure_ldp() -> Work:
        pure_ldp()  # imports, which are not timed

        def work() -> Any:
            client, server = pure_ldp()
            for value in plain:
                server.aggregate(client.privatise(value + 1))
            return server.estimate_all(range(1, k + 1))

        return work

    def by_multi_freq() -> Work:
        client, aggregate = multi_freq()
        return lambda: users * aggregate([client(value, k, epsilon) for value in plain], k, epsilon)

    peers = {"pure-ldp": by_pure_ldp, "multi-freq": by_multi_freq}
    after = {"multi-freq": partial(_clipped, users, (k,))}
    truth = np.bincount(values, minlength=k)
    return Job(name, truth, lambda: mechanism.estimate(mechanism.perturb(values)), peers, after)


def _marginals(users: int = 20_000, sizes: tuple[int, ...] = (5, 8, 12), epsilon: float = 1.0) -> Job:
    """Counts of every value of three attributes, under one ε per user."""
    import pyarrow as pa

    from deniable.collection import Collection
    from deniable.database import connect
    from deniable.tables import Categorical, Table

    rng = np.random.default_rng(3)
    columns = [rng.choice(k, users, p=(weights := 0.7 ** np.arange(k)) / weights.sum()) for k in sizes]
    tuples = np.column_stack(columns).tolist()
    names = [f"a{number}" for number in range(len(sizes))]
    labels = {name: [f"v{value}" for value in range(k)] for name, k in zip(names, sizes, strict=True)}
    attributes: dict[str, Any] = {name: Categorical(*labels[name]) for name in names}
    table = Table("people", **attributes)
    frame = pa.table(
        {"uid": np.arange(users)}
        | {name: pa.array(labels[name]).take(pa.array(column)) for name, column in zip(names, columns, strict=True)}
    )
    collection = Collection(table, epsilon=epsilon)

    def ours() -> Any:
        database = connect(collection.perturb(people=frame))
        estimates = []
        for name in names:
            answer = database.sql(f"SELECT {name}, COUNT(*) AS people FROM people GROUP BY {name}").to_arrow()  # noqa: S608
            counts = dict(zip(answer[name].to_pylist(), answer["people"].to_pylist(), strict=True))
            estimates += [counts.get(label, 0.0) for label in labels[name]]
        return estimates

    def multi_freq() -> Work:
        from multi_freq_ldpy.mdim_freq_est.SMP_solution import SMP_ADP_Aggregator_MI, SMP_ADP_Client

        d = len(sizes)

        def work() -> Any:
            reports = [SMP_ADP_Client(values, list(sizes), d, epsilon) for values in tuples]
            shares = SMP_ADP_Aggregator_MI(reports, list(sizes), d, epsilon)
            return users * np.concatenate([np.asarray(share) for share in shares])

        return work

    truth = np.concatenate([np.bincount(c, minlength=k) for c, k in zip(columns, sizes, strict=True)])
    after = {"multi-freq": partial(_clipped, users, sizes)}
    return Job(f"{len(sizes)} marginals", truth, ours, {"multi-freq": multi_freq}, after)


def _noise(counts: int = 10_000, epsilon: float = 0.1) -> Job:
    truth = np.random.default_rng(4).integers(0, 1000, counts)
    mechanism, plain = DiscreteLaplace(epsilon), truth.tolist()

    def diffprivlib() -> Work:
        from diffprivlib.mechanisms import Geometric

        theirs = Geometric(epsilon=epsilon)
        return lambda: [theirs.randomise(value) for value in plain]

    def opendp() -> Work:
        dp = _opendp()
        theirs = dp.m.make_laplace(dp.vector_domain(dp.atom_domain(T=int)), dp.l1_distance(T=int), scale=1 / epsilon)
        return lambda: theirs(plain)

    def pydp() -> Work:
        from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

        theirs = LaplaceMechanism(epsilon, 1.0)
        return lambda: [theirs.add_noise(value) for value in plain]

    peers = {"diffprivlib": diffprivlib, "OpenDP": opendp, "PyDP": pydp}
    return Job("noise on counts", truth, lambda: mechanism.perturb(truth), peers)


def _percentiles(size: int = 1 << 16, bound: int = 1638, epsilon: float = 0.5, share: float = 0.995) -> Iterator[Job]:
    """By noisy max over ranks, as peers do it, and by smooth sensitivity, as the baselines of streams do it."""
    values = np.minimum(np.ceil(np.random.default_rng(5).lognormal(1.6, 0.85, size)), bound).astype(np.int64)
    smooth, choice = SmoothPercentile(epsilon, bound, share, 1e-12), NoisyMax(epsilon)
    candidates = np.arange(1, bound + 1)

    def by_rank() -> Any:
        ranks = np.searchsorted(np.sort(values), candidates, side="right")
        return candidates[choice.perturb(-np.abs(ranks - round(share * size)))]  # one value moves a rank by at most 1

    def diffprivlib() -> Work:
        from diffprivlib.tools import quantile

        return lambda: quantile(values, share, epsilon=epsilon, bounds=(0, bound))

    def opendp() -> Work:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
        scores = dp.t.make_quantile_score_candidates(*space, candidates=candidates.tolist(), alpha=share)

        def chain(scale: float) -> Any:
            return scores >> dp.m.then_noisy_max(dp.max_divergence(), scale=scale, negate=True)  # low scores are good

        measurement = dp.binary_search_chain(chain, d_in=2, d_out=epsilon)  # one value replaced
        plain = values.tolist()
        return lambda: candidates[measurement(plain)]

    def pydp() -> Work:
        from pydp.algorithms.laplacian import Percentile

        bounds: dict[str, Any] = {"lower_bound": 0, "upper_bound": bound, "dtype": "float"}  # for "int" it answers 0
        plain = values.astype(float).tolist()
        # Its ε is for one value more or less; replacing one is both.
        return lambda: Percentile(epsilon=epsilon / 2, percentile=share, **bounds).quick_result(plain)

    peers = {"diffprivlib": diffprivlib, "OpenDP": opendp, "PyDP": pydp}
    truth = np.quantile(values, share)
    yield Job("percentile, noisy max", truth, by_rank, peers)
    yield Job("percentile, smooth", truth, lambda: smooth.perturb(values), peers)


def _ranges(fanout: int, leaves: int = 1 << 12, theta: int = 20, epsilon: float = 1.0) -> Job:
    """Sums over 200 ranges from one noisy tree; replacing one value moves a sum by up to θ."""
    rng = np.random.default_rng(6)
    values = np.minimum(rng.geometric(0.15, leaves), theta)
    starts, stops = np.sort(rng.integers(0, leaves + 1, (200, 2)), axis=1).T

    def sums(noisy: Any) -> Any:
        prefix = np.concatenate(([0.0], np.cumsum(noisy)))
        return prefix[stops] - prefix[starts]

    def ours() -> Any:
        tree: dict[str, Any] = {"block": 1, "fanout": fanout, "warmup": 0, "threshold": PublicThreshold(theta)}
        return sums(ToPS(epsilon, theta, horizon=leaves, keep=False, **tree).push_many(values))

    def opendp() -> Work:
        dp = _opendp()
        space = dp.vector_domain(dp.atom_domain(T=int), size=leaves), dp.l1_distance(T=int)
        tree = dp.t.make_b_ary_tree(*space, leaf_count=leaves, branching_factor=fanout)
        consistent = dp.t.make_consistent_b_ary_tree(branching_factor=fanout)
        measurement = dp.binary_search_chain(lambda s: tree >> dp.m.then_laplace(scale=s), d_in=theta, d_out=epsilon)
        plain = values.tolist()
        return lambda: sums(consistent(measurement(plain))[:leaves])

    name = f"range sums, b = {fanout}"
    return Job(name, sums(values), ours, {"OpenDP": opendp})


def _opendp() -> Any:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    return dp


def _repeat(work: Work, repetitions: int) -> tuple[list[Any], float]:
    """All answers, and the time of the fastest repetition; a first one, to compile, is not counted."""
    work()
    answers, best = [], math.inf
    for _ in range(repetitions):
        start = time.perf_counter()
        answer = work()
        best = min(best, time.perf_counter() - start)
        answers.append(np.asarray(answer, dtype=np.float64))
    return answers, best


def _clipped(users: int, sizes: tuple[int, ...], answers: Any) -> Any:
    """Negative counts become 0, and those of each attribute add up to the users: biased, but closer for rare values."""
    parts = [part.clip(0) for part in np.split(answers, np.cumsum(sizes)[:-1])]
    return np.concatenate([users * part / part.sum() for part in parts])


def _squares(answers: list[Any], truth: Any) -> Any:
    return np.array([np.mean((answer - truth) ** 2) for answer in answers])


def _relative(squares: Any) -> float:
    return float(squares.std(ddof=1) / math.sqrt(squares.size) / squares.mean()) if squares.mean() else 0.0
