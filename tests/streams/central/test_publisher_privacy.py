"""The complete publisher, warm-up included, is ε-DP: by an exact coupling of its noise, and by its output law."""

import copy
import itertools
import math
import pickle
import subprocess
import sys
from collections import defaultdict
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
from scripted_source import ScriptedSource

from deniable.errors import InvalidParameter, RandomnessFault
from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import SecureSource, SeededSource
from deniable.streams.central import epochs, level_shift, smoother_choice
from deniable.streams.central.evidence import EpochSums, KeptValues
from deniable.streams.central.named_publishers import Flat, ToPS, restore
from deniable.streams.central.publisher import Publisher
from deniable.streams.central.renewal_share import SHARES
from deniable.streams.central.settings import Settings
from deniable.streams.central.threshold import PaperScore, PredictedError, PublicThreshold
from deniable.streams.structure.smoother import Mean
from deniable.streams.structure.tents import Tents
from deniable.streams.structure.value_grid import Grid
from effort import repetitions

EPSILON, BOUND, WARMUP, HORIZON = 2.0, 3, 3, 4


def settings(**more):
    facts = {"block": 1, "fanout": 2, "measure_start": True, "threshold": PredictedError()}
    return Settings("test", EPSILON, Grid(BOUND), WARMUP, HORIZON, **{**facts, **more})


VARIANTS = [
    settings(),
    settings(block=2),
    settings(block=2, smoother=Mean()),
    settings(threshold=PaperScore(fanout=2)),
    settings(consistent=False, measure_start=False),
    settings(fanout=4),
    settings(block=None, fanout=None),
    settings(renew=True),
    settings(renew=True, block=2),
    settings(renew=True, block=None, fanout=None),
    settings(renew=True, block=2, fit_smoother=True),
    settings(hierarchy="tent"),
    settings(hierarchy="tent", fanout=3),
]


def ends_early(monkeypatch):
    """Epochs that end as soon as published sums are another level than was learnt, however short and noisy they are."""
    for module, names in ((epochs, ("_ENOUGH_FOR_A_SHORT_EPOCH", "SHORTEST_WARMUP")), (level_shift, ("_CERTAIN",))):
        for name in names:
            monkeypatch.setattr(module, name, 0)
    monkeypatch.setattr(level_shift, "_FACTOR", 1.0)


def transcript(chosen, values, seed, shifts, seen=None):
    """Everything that a run tells: what was learnt, every published value, plans, and shares of what is asked."""

    def script(name, scale, draw):
        noise = draw()
        if seen is not None:
            seen[name] = (scale, noise.size)
        for index, shift in shifts.get(name, {}).items():
            noise[index] += shift
        return noise

    publisher = Publisher(chosen, source=ScriptedSource(seed, script), simulation=True)
    published = publisher.push_many(np.array(values))
    parts = publisher._blocks.parts()
    learnt, plans = tuple(learnt for _, learnt, _ in parts), tuple(blocks.plan for _, _, blocks in parts)
    shares = tuple(epoch.share for epoch in publisher.epoch_facts())
    return (learnt, tuple(published.tolist()), publisher.flush(), plans, shares), publisher


@pytest.mark.parametrize(
    ("chosen", "early"),
    [
        *((chosen, False) for chosen in VARIANTS),
        *((chosen, True) for chosen in VARIANTS if chosen.renew and chosen.block),
    ],
)
def test_for_every_neighbour_there_is_noise_at_most_e_to_the_epsilon_less_likely_that_tells_the_same(
    chosen, early, monkeypatch
):
    """Shift the noise of what the changed value touches; the transcript stays, the cost is at most ε.

    For one transcript the shift is constant, so noise maps one to one, and summing over noise gives P(x) ≤ e^ε·P(x').
    """
    if early:
        ends_early(monkeypatch)
    monkeypatch.setattr(smoother_choice, "_FEWEST_BLOCKS", 1)
    smoothers = set()
    learning, asked = mock.Mock(wraps=epochs.learn), set()
    monkeypatch.setattr(epochs, "learn", learning)
    rng = np.random.default_rng(2)
    worst = 0.0
    for seed in range(repetitions(3, 12)):
        values = rng.integers(0, BOUND + 1, WARMUP + HORIZON + 2).tolist()
        seen = {}
        learning.reset_mock()
        told, publisher = transcript(chosen, values, seed, {}, seen)
        counts = [call.args[0].count for call in learning.call_args_list]
        thetas = [learnt.theta for learnt in told[0]]
        asked |= set(counts)
        smoothers |= {plan.smoother for plan in told[3]}
        for index, other in itertools.product(range(len(values)), range(BOUND + 1)):
            if other == values[index]:
                continue  # no neighbour, the stream itself
            neighbour = [*values[:index], other, *values[index + 1 :]]
            if index < WARMUP:
                shifts = warmup_shifts(chosen, values, neighbour, thetas[0])
            elif chosen.renew:
                shifts = epoch_shifts(publisher, values, neighbour, index - WARMUP, thetas, counts)
            else:
                theta = thetas[0]
                shifts = tree_shifts(publisher, index - WARMUP, min(values[index], theta) - min(other, theta))
            again, _ = transcript(chosen, neighbour, seed, shifts)
            assert again == told
            cost = sum(abs(Fraction(shift)) / seen[name][0] for name, part in shifts.items() for shift in part.values())
            assert cost <= Fraction(EPSILON)
            worst = max(worst, float(cost))
    assert worst > (0.7 if early else 0.79) * EPSILON  # nothing near a factor two is given away
    assert not early or min(asked) < HORIZON
    assert early or len(smoothers) > chosen.fit_smoother


def warmup_shifts(chosen, values, neighbour, theta):
    """The winner's score gets one unit more; the other answers are moved back to where they were."""
    mine, theirs = (np.array(stream[:WARMUP]) for stream in (values, neighbour))
    candidates = chosen.threshold.candidates(BOUND).tolist()
    shifts = {("warm-up", "threshold"): {candidates.index(theta): 1 << 16}} if (mine != theirs).any() else {}
    if chosen.measure_start:
        for own, other in zip(*(KeptValues(part, BOUND).questions(theta) for part in (mine, theirs)), strict=True):
            shifts["warm-up", own.name] = {0: own.total - other.total}
    return shifts


def epoch_shifts(publisher, values, neighbour, position, thetas, counts):
    """Nodes of the epoch's own tree, and everything that the next epoch is told, if there is a next one."""
    parts = publisher._blocks.parts()
    number = max(index for index, part in enumerate(parts) if part[0] <= position)
    start, _, blocks = parts[number]
    inside, theta, where = position - start, thetas[number], WARMUP + position
    change = min(values[where], theta) - min(neighbour[where], theta)
    tree = tree_shifts(publisher, inside, change, blocks.plan)
    shifts = {("epoch", number, *name): part for name, part in tree.items()}
    if number + 1 == len(thetas) or values[where] == neighbour[where]:
        return shifts
    count, end, asked = counts[number], WARMUP + start + blocks.published, []
    if where < end - count:
        return shifts  # nothing was asked about it
    for stream in (values, neighbour):
        sums = EpochSums(PredictedError(), BOUND, theta, count)
        sums.extend(np.array(stream[end - count : end]))
        asked.append(sums.questions(thetas[number + 1]))
    winner = PredictedError().candidates(BOUND).tolist().index(thetas[number + 1])
    shifts["epoch", number, "renewal", "threshold"] = {winner: 1 << 16}
    for own, other in zip(*asked, strict=True):
        assert abs(own.total - other.total) <= own.sensitivity
        shifts["epoch", number, "renewal", own.name] = {0: own.total - other.total}
    return shifts


def tree_shifts(publisher, position, change, plan=None):
    """Every node above the changed value moves with it: by as much, or by its integer weight times as much."""
    plan = publisher.plan if plan is None else plan
    chunk, inside = divmod(position, plan.horizon)
    leaf = inside // plan.block
    if isinstance(plan.tree, Tents):
        shifts = {("chunk", chunk, "tent", 0, 0): {leaf: change}}
        for level in range(1, plan.tree.height):
            knot, over = divmod(leaf, plan.fanout**level)
            right = 2 * over + 1
            moved = {knot: (plan.tree.weight(level) - right) * change, knot + 1: right * change}
            shifts["chunk", chunk, "tent", level, 0] = moved
        return shifts
    return {
        ("chunk", chunk, "level", level, 0): {leaf // plan.fanout**level: change} for level in range(plan.tree.height)
    }


def test_the_coupling_has_teeth():
    chosen, values = VARIANTS[0], [1, 2, 3, 0, 1, 2, 3]
    told, publisher = transcript(chosen, values, 1, {})
    neighbour = [*values[:5], 0, 3]
    cut = min(2, publisher.learnt.theta)
    shifts = tree_shifts(publisher, 2, cut)
    assert transcript(chosen, neighbour, 1, shifts)[0] == told
    del shifts["chunk", 0, "level", 1, 0]  # forgetting the parent changes what is told
    assert transcript(chosen, neighbour, 1, shifts)[0] != told


@pytest.mark.parametrize("block", [1, 2])
def test_the_output_law_of_a_tiny_tree(block):
    """r = 4, b = 2, values 0 and 1: every output of every noise vector in a window, with its probability.

    A neighbour's noise differs by at most 1 per node, so outputs of noise within ±k are outputs of the neighbour's
    noise within ±(k + 1): the inequality between the two sums is exact, nothing is cut off.
    """
    epsilon, reach = 2.0, 1 if block == 1 else repetitions(2, 3)
    chosen = Settings(
        "test",
        epsilon,
        Grid(1),
        warmup=0,
        horizon=4,
        block=block,
        fanout=2,
        threshold=PublicThreshold(1),
        measure_start=False,
    )
    tree = chosen.plan.tree
    law = DiscreteLaplace(epsilon / tree.height)
    counts = [tree.nodes(level) for level in range(tree.height)]

    def output_law(values, reach):
        chances = {noise: float(law.probability(noise)) for noise in range(-reach, reach + 1)}
        draws = list(itertools.product(chances, repeat=sum(counts)))

        def script(name, scale, _):
            level = name[3]
            return draws[name[1]][sum(counts[:level]) : sum(counts[: level + 1])]

        def publisher():
            return Publisher(chosen, source=ScriptedSource(0, script), simulation=True)

        if block == 1:  # chunks are independent: one publisher runs through all noise, a chunk each
            outputs = publisher().push_many(np.tile(values, len(draws))).reshape(-1, 4)
        else:
            outputs = []
            for number in range(len(draws)):
                draws[0], draws[number] = draws[number], draws[0]
                outputs.append(publisher().push_many(values))
                draws[0], draws[number] = draws[number], draws[0]
        result = defaultdict(float)
        for draw, output in zip(draws, outputs, strict=True):
            result[tuple(output.tolist())] += math.prod(chances[noise] for noise in draw)
        return result

    used = 0.0
    for stream, neighbour in itertools.permutations([np.array([0, 1, 1, 0]), np.array([0, 0, 1, 0])]):
        narrow, wide = output_law(stream, reach), output_law(neighbour, reach + 1)
        assert all(chance <= math.exp(epsilon) * wide[output] * (1 + 1e-12) for output, chance in narrow.items())
        used = max(used, *(math.log(chance / wide[output]) for output, chance in narrow.items()))
    assert used > epsilon / 2  # with twice the ε the noise stands for, the test would fail


def second_wins(scores, cost):
    """Of two candidates, by the law of the difference of two discrete Laplace noises, which has a closed form."""
    q = math.exp(-cost / (1 << 16))  # a score's unit is 2^-16
    ahead = scores[0] - scores[1] + 1  # noise that the second one needs more; in a tie the first one wins
    size, flat = ((1 - q) / (1 + q)) ** 2, (1 + q * q) / (1 - q * q)

    def beyond(start):  # Σ of q^k·(k + flat) over k ≥ start > 0
        return size * q**start * ((start + flat) / (1 - q) + q / (1 - q) ** 2)

    return beyond(ahead) if ahead > 0 else 1 - beyond(1 - ahead)


def test_the_output_law_of_two_epochs():
    """Epochs of one value up to 2, θ of the second chosen from the first: every output with its exact probability.

    Noise of a published value is enumerated as above: a neighbour's differs by at most 2. The winner of the choice of θ
    is forced, and has the exact law of noisy max for the scores that the value gives.
    """
    epsilon, reach = 2.0, repetitions(1, 2)
    facts = {"renew": True, "start": 1, "measure_start": False, "block": 1, "fanout": 2}
    chosen = Settings("test", epsilon, Grid(2), warmup=0, horizon=1, **facts)

    def output_law(values, reach):
        result = defaultdict(float)
        for noise in itertools.product(range(-reach, reach + 1), repeat=2):
            for winner in (0, 1):
                scores = []

                def script(name, _, draw, noise=noise, winner=winner):
                    if name[-1] == "threshold" or name[2] == "renewal":
                        return np.where(np.arange(draw().size) == winner, 1 << 40, 0)
                    return np.full(draw().size, noise[name[1]] if name[1] < 2 else 0)

                publisher = Publisher(chosen, source=ScriptedSource(0, script), simulation=True)
                with mock.patch.object(
                    PredictedError, "scores_by_counts", autospec=True, side_effect=rule_scores(scores)
                ):
                    published = publisher.push_many(values)
                thetas = tuple(learnt.theta for _, learnt, _ in publisher._blocks.parts()[:2])
                assert thetas[1] == winner + 1
                shares = [Fraction(epoch.share) for epoch in publisher.epoch_facts()[:2]]
                second = second_wins(scores[0], chosen.renewal_cost(shares[0]))
                chance = second if winner else 1 - second
                # With θ twice as large, the law of noise is twice as wide.
                for theta, draw, share in zip(thetas, noise, shares, strict=True):
                    chance *= float(DiscreteLaplace(chosen.epoch(1, share).epsilon, theta).probability(draw))
                result[thetas, tuple(shares), tuple(published.tolist())] += chance
        return result

    def rule_scores(scores):
        plain = PredictedError.scores_by_counts

        def kept(self, *given):
            scores.append(plain(self, *given).tolist())
            return np.array(scores[-1])

        return kept

    streams = [(0, 2), (1, 2), (2, 2), (1, 0), (1, 1)]
    laws = {
        (values, wide): output_law(np.array(values), reach + 2 * wide) for values in streams for wide in (False, True)
    }
    used = 0.0
    for stream, neighbour in itertools.permutations(streams, 2):
        if sum(own != other for own, other in zip(stream, neighbour, strict=True)) == 1:
            narrow, wide = laws[stream, False], laws[neighbour, True]
            assert all(chance <= math.exp(epsilon) * wide[output] * (1 + 1e-12) for output, chance in narrow.items())
            used = max(used, *(math.log(chance / wide[output]) for output, chance in narrow.items()))
    assert used > 0.9 * epsilon


@pytest.mark.parametrize("epsilon", [0.05, 0.1, 1.0, 1 / 3])
def test_an_epoch_s_tree_and_what_is_learnt_from_it_cost_epsilon_together(epsilon):
    chosen = Settings("test", epsilon, Grid(1000), 256, 1 << 20, renew=True)
    lengths = [chosen.first_epoch]
    while len(lengths) < 7:
        lengths.append(chosen.next_epoch(lengths[-1]))
    assert lengths == [1024, 4096, 16_384, 65_536, 262_144, 1 << 20, 1 << 20]
    for length, share in itertools.product((*lengths, 12_345, 400_000), SHARES):
        spent = chosen.spent_in_epoch(length, share).epsilon
        assert Fraction(epsilon) * (1 - Fraction(1, 10**12)) < spent <= Fraction(epsilon)
        assert chosen.epoch(length, share).horizon == length
    for length, known in itertools.product(lengths, (0, 100 * epsilon, 10**9)):
        assert chosen.share(length, known) in SHARES
        assert chosen.former_share(length) in SHARES


def test_shares_of_the_warm_up_add_up_to_epsilon():
    for chosen in VARIANTS:
        assert sum(chosen.shares(WARMUP).values()) == 1
    for epsilon in (0.05, 0.1, 1.0, 1 / 3):
        parts = [Fraction(cost) for cost in VARIANTS[0].costs(epsilon, WARMUP).values()]
        assert sum(parts) <= Fraction(epsilon)
        assert sum(parts) > Fraction(epsilon) * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("kind", [ToPS, Flat])
def test_published_values_say_nothing_of_the_warm_up_but_what_was_learnt(kind):
    """Two warm-ups that teach the same lead to the same published stream under the same seed."""
    values = np.arange(50) % 7
    first, second = (
        kind(math.inf, 10, warmup=8, horizon=32, source=SeededSource(1), simulation=True) for _ in range(2)
    )
    warm = np.array([1, 2, 3, 4, 5, 6, 7, 10])
    assert np.array_equal(
        first.push_many(np.concatenate((warm, values))), second.push_many(np.concatenate((warm[::-1], values)))
    )


@pytest.mark.parametrize("block", [1, 4])
def test_a_publisher_publishes_nothing_in_a_fork(block):
    # Noise that was fetched ahead is in both processes: the difference of what they publish would be the data.
    script = f"""
import os, sys
from deniable.errors import RandomnessFault
from deniable.streams import Perturber, ToPS
tops = ToPS(1.0, 100, warmup=1000, horizon=4096, block={block})
tops.push_many([7] * 1000 + [3] * 8)
sums = Perturber(1.0, 100, 4096, {block}).begin()
sums.push_many([3] * 8)
for _ in range({block}):
    tops.push(3)
if os.fork() == 0:
    for publish in (
        lambda: [tops.push(5) for _ in range({block})],
        lambda: tops.push_many([5] * 8),
        lambda: sums.push_many([5] * 8),
    ):
        try:
            publish()
        except RandomnessFault as error:
            assert "another process" in str(error)
        else:
            os._exit(1)
    os._exit(0)
tops.push_many([5] * 8), sums.push_many([5] * 8)
sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


@pytest.mark.parametrize("kind", [ToPS, Flat])
def test_publishers_that_share_a_secure_source_do_not_share_noise(kind):
    source = SecureSource()
    settings = {"warmup": 0, "horizon": 512, "block": 1} if kind is ToPS else {"warmup": 0, "horizon": 512}
    first, second = (kind(0.1, 100, threshold=PublicThreshold(50), source=source, **settings) for _ in range(2))
    values = np.arange(512) % 50
    # Two draws of first node are equal with a chance of at most tanh(ε/2θ) < 0.002: 400 of 512 never are.
    assert np.count_nonzero(first.push_many(values) == second.push_many(values)) < 400
    with pytest.raises(InvalidParameter, match="key is not known"):
        first.state()


def test_a_key_serves_one_publisher_in_a_process():
    key, settings = SecureSource.new_key(), {"warmup": 0, "threshold": PublicThreshold(50)}
    first = ToPS(0.1, 100, key=key, **settings)
    private = first.push_many([5] * 10)
    with pytest.raises(RandomnessFault, match="same key and settings"):
        ToPS(0.1, 100, key=key, **settings)
    other = ToPS(0.1, 100, key=key, name="another", **settings)
    assert other.push_many([5] * 10).size == private.size
    state = first.state()
    del first
    with pytest.raises(RandomnessFault, match="go on from its state"):
        ToPS(0.1, 100, key=key, **settings)
    assert restore(state).published == 10
    with pytest.raises(RandomnessFault, match="same key and settings"):
        ToPS(0.1, 100, key=bytes.fromhex(state["key"]), **settings)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_publisher_cannot_be_duplicated(duplicate):
    with pytest.raises(RandomnessFault, match="a publisher cannot be copied"):
        duplicate(ToPS(1.0, 100, warmup=1000))
