"""Parts of `deniable bench streams` on small files: each figure is what its page says it is."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run
from deniable.randomness import SeededSource
from deniable.streams import Expectation, ToPL, ToPS
from deniable.streams.local.threshold_choice import candidates
from deniable_lab.benchmarks import local_streams, stream_error, stream_predictions
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.drawn_distributions import SHAPES, drawn, of_values
from deniable_lab.experiments.ratios import Ratio, geometric_mean, ratio
from deniable_lab.experiments.stream_reference import EPSILONS
from deniable_lab.experiments.streams import overall


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Made-up values under the names of real streams."""
    made = tmp_path_factory.mktemp("data")
    (made / "streams").mkdir()
    rng = np.random.default_rng(3)
    for name, values in {
        "nasa_http_rps": rng.poisson(2 + np.sin(np.arange(50_000) / 5_000)),
        "kosarak_prefix_length": np.ceil(4 * (1 + rng.pareto(1.7, 20_000))).clip(max=4_000).astype(np.int64),
    }.items():
        pq.write_table(pa.table({"value": values}), made / "streams" / f"{name}.parquet")
    return made


def test_bursts_compare_the_methods_of_the_overall_experiment():
    *rows, mean = stream_error.bursts(2)
    for row, epsilon in zip(rows, EPSILONS, strict=True):
        for ours, method in ((row.ours, overall.OURS), (row.theirs, overall.PAPER)):
            cell = {"data": "DNS stand-in", "epsilon": epsilon, "method": method}
            errors = [overall.measure(cell, seed, Data())["MSE"] for seed in range(2)]
            assert ours.mean == pytest.approx(np.mean(errors))
            assert ours.stderr == pytest.approx(np.std(errors, ddof=1) / np.sqrt(2))
        assert row.note.startswith(f"{ratio(row.ours, row.theirs)} times; θ ")
    expected = geometric_mean(ratio(row.ours, row.theirs) for row in rows)
    assert (mean.what, Ratio(mean.ours.mean, mean.ours.stderr)) == ("DNS stand-in geometric mean", expected)


def test_predictions_compare_smoothers_of_the_same_blocks():
    """The sum of squares of published sums inside blocks, from published values, is what the part computes."""
    values = np.random.default_rng(4).poisson(20, 3 * stream_predictions.HORIZON)
    tops = ToPS(1.0, 1000, horizon=stream_predictions.HORIZON, source=SeededSource(1), simulation=True)
    published = tops.push_many(values)
    values = values[tops.settings.warmup :]
    expected = 0.0
    for begin, learnt, blocks in tops._blocks.parts():
        size = blocks.plan.block
        if blocks.plan.horizon == stream_predictions.HORIZON:
            whole = slice(begin, begin + blocks.totals().size * size)
            apart = (published[whole] - np.minimum(values[whole], learnt.theta)).reshape(-1, size)[:, :-1]
            expected += np.square(np.cumsum(apart, axis=1)).sum()
    ours, recent, *_ = stream_predictions._errors(tops, values.astype(float))
    assert ours == pytest.approx(expected)
    assert ours < recent


def test_the_part_on_drift_expects_more_of_it_than_the_defaults(folder):
    stream = stream_error.load(Data(folder), "nasa_http_rps")
    first, *_ = stream_error.drift(Data(folder), 2)
    settings = {"expected": {"expectation": Expectation(drift=0.05)}, "paper": {"paper": True}, "default": {}}
    errors = {
        name: np.mean(
            [
                stream_error.answered(ToPS(0.01, 100, source=SeededSource(seed), simulation=True, **chosen), stream)
                for seed in range(2)
            ]
        )
        for name, chosen in settings.items()
    }
    assert first.what == "nasa_http_rps ε=0.01"
    assert first.ours.mean == pytest.approx(errors["expected"])
    assert first.theirs.mean == pytest.approx(errors["paper"])
    assert first.ours.mean != pytest.approx(errors["default"])


def test_a_threshold_is_compared_with_the_best_one():
    values = np.random.default_rng(1).geometric(0.15, 100_000)
    row = local_streams.next_to_best(of_values("geometric", values, 1000), 2.0, 2, values[: 1 << 16])
    thetas = []
    for seed in range(2):
        topl = ToPL(2.0, 1000, source=SeededSource(seed), simulation=True)
        topl.publish(values[: 1 << 16])
        thetas.append(topl.theta)
    unit = topl.protocol.second(1.0).variance(0.5)

    def error(theta):  # the formula of the page on streams
        return 2**20 / 3 * unit * theta**2 + 2**40 / 6 * np.maximum(values - theta, 0).mean() ** 2

    least = min(error(theta) for theta in candidates(topl.protocol))
    assert row.ours.mean == pytest.approx(np.mean([error(theta) for theta in thetas]) / least)
    assert least == pytest.approx(min(error(theta) for theta in np.geomspace(1, 1000, 2000)), rel=0.01)
    assert (row.ratio, row.what) == (row.ours.mean, "geometric ε=2")
    assert row.met == (row.ours.mean <= 2)


def test_drawn_distributions_have_every_shape_twice_and_differ():
    distributions = [drawn(seed) for seed in range(2 * len(SHAPES))]
    assert [made.shape for made in distributions[1::2]] == list(SHAPES) == [made.shape for made in distributions[::2]]
    for made in distributions:
        assert made.shares.sum() == pytest.approx(1)
        assert made.values.min() >= 0
        assert made.values.max() <= made.bound
        assert made.excess(np.array([0.0]))[0] == pytest.approx(made.values @ made.shares)
    assert len({made.bound for made in distributions}) > len(SHAPES)


@pytest.mark.slow
def test_the_commands_that_pages_name_print_their_rows(folder):
    bursts = run("bench", "streams", "--part", "bursts", "--repetitions", 2, COLUMNS="160")
    assert (bursts.returncode, bursts.stdout.count("DNS stand-in")) == (0, 5), bursts.stderr
    tails = run("bench", "streams", "--local", "--part", "tails", "--repetitions", 2, "--data", folder, COLUMNS="160")
    assert tails.returncode == 0 or "targets missed: " in tails.stderr, tails.stderr  # two repetitions on made-up data
    for row in ("Kosarak B=42,178 ε=0.5", "Kosarak B=5,000 ε=2", "baskets B=1,000 ε=1"):
        assert row in tails.stdout
    for part in (["--part", "drift"], ["--local", "--part", "tails"]):
        skipped = run("bench", "streams", *part)
        assert (skipped.returncode, "skipped, it needs --data" in skipped.stderr) == (0, True)
