"""Windows of released streams: values, standard errors, timestamps and files."""

import json

import duckdb
import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.errors import InvalidData, QueryRefused
from deniable.streams.released.covariance import IndependentNoise, TreeNoise
from deniable.streams.released.prediction_error import Smoothing
from deniable.streams.released.released_stream import Released
from deniable.streams.released.roughness import Roughness
from deniable.streams.released.windows import Truncation
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.smoother import Exponential, Recent
from deniable.streams.structure.value_grid import Grid
from effort import repetitions


def stream(values=range(100), grid=None, **more):
    return Released(np.array(values), IndependentNoise(4.0), grid or Grid(200), {"epsilon": 0.5}, **more)


def test_sums_and_means_with_their_standard_errors():
    released = stream()
    assert (released.sum(10, 20).value, released.sum(10, 20).stderr) == (145, pytest.approx(np.sqrt(40)))
    assert (released.mean(10, 20).value, released.mean(10, 20).stderr) == (14.5, pytest.approx(np.sqrt(40) / 10))
    windows = released.sums([0, 5], [100, 5])
    assert windows.values.tolist() == [4950, 0]
    assert windows.stderrs.tolist() == [20, 0]
    low, high = released.sum(0, 100).interval
    assert (low + high) / 2 == 4950
    assert (high - low) / 2 == pytest.approx(1.96 * 20, rel=1e-3)


def test_values_on_another_grid():
    released = stream(grid=Grid(1.0, low=-1.0, resolution=0.01))
    assert released.sum(10, 20).value == pytest.approx(10 * -1 + 1.45)
    assert released.sum(10, 20).stderr == pytest.approx(0.01 * np.sqrt(40))
    assert released.array()[3] == pytest.approx(-0.97)


@pytest.mark.parametrize("window", [(-1, 5), (5, 101), (6, 5), (0.5, 2)])
def test_windows_outside_the_stream_are_refused(window):
    with pytest.raises(QueryRefused):
        stream().sum(*window)


def test_an_empty_window_has_a_sum_and_no_mean():
    assert stream().sum(7, 7).value == 0
    with pytest.raises(QueryRefused, match="empty"):
        stream().mean(7, 7)


def test_windows_by_timestamps():
    days = np.datetime64("2024-01-01") + np.arange(100) // 2 * np.timedelta64(1, "D")
    released = stream().with_timestamps(days)
    assert released.between("2024-01-03", "2024-01-05") == (4, 8)
    assert released.between("2023-01-01", "2030-01-01") == (0, 100)
    assert released.between("2024-01-05", "2024-01-03") == (8, 8)
    with pytest.raises(QueryRefused, match="no timestamps"):
        stream().between(0, 1)
    with pytest.raises(InvalidData, match="go back"):
        stream(timestamps=days[::-1])
    with pytest.raises(InvalidData, match="one timestamp per value"):
        stream(timestamps=days[:5])
    with pytest.raises(QueryRefused, match="an end of the window is not a time"):
        released.between("soon", "2025-01-01")
    for odd in ([f"{day:02}.01.2024" for day in range(len(released))], [*days[:-1], np.datetime64("NaT")]):
        with pytest.raises(InvalidData, match="numbers or points in time"):
            released.with_timestamps(odd)


def test_truncation_that_nobody_asked_about_is_unknown():
    assert stream(truncation=Truncation(theta=50, bound=200)).sum(0, 10).truncation is None
    assert stream(truncation=Truncation(theta=200, bound=200)).sum(0, 10).truncation == 0


def test_truncation_and_smoothing_are_told_apart_from_the_noise():
    released = stream(
        truncation=Truncation(theta=50, bound=200, share=0.01, share_stderr=0.001, tail=0.4),
    )
    answer = released.sum(3, 60)
    assert answer.truncation == pytest.approx(57 * 0.012 * 20)
    assert answer.stderr == pytest.approx(np.sqrt(57 * 4))
    blocks = blocked([5] * 96, smoothing=Smoothing(BlockLayout(64, 32), Roughness((1.0, 32.0), (4.0, 128.0))))
    answer = blocks.sum(4, 56)  # values of variance 2, independent: 4 and 24 of blocks of 32
    assert answer.smoothing == pytest.approx(np.sqrt(4 * 2 * (1 - 4 / 32) + 24 * 2 * (1 - 24 / 32)), rel=0.15)
    assert answer.error == pytest.approx(np.hypot(answer.stderr, answer.smoothing))
    assert 1.96 < (answer.interval[1] - answer.value) / answer.error < 2.12
    assert blocks.sum(32, 64).smoothing == 0


def blocked(values=range(96), **more):
    noise = TreeNoise(BlockLayout(64, 32), 2, True, 3.0, 0.0, Recent())
    return Released(np.array(values, dtype=float), noise, Grid(200), {"epsilon": 0.5}, **more)


def test_what_was_cut_is_added_back_with_its_error_unless_the_cut_stream_is_asked_for():
    known = Truncation(50, 200, 0.01, 0.001, excess=0.25, excess_variance=0.01, excess_square=4.0)
    released, plain = blocked(truncation=known), blocked()
    answer, cut = released.sum(3, 60), released.sum(3, 60, cut=True)
    assert (answer.excess, answer.truncation) == (57 * 0.25, 0)
    assert answer.value == cut.value + 57 * 0.25 == plain.sum(3, 60).value + 57 * 0.25
    assert answer.cut == pytest.approx(np.sqrt(57**2 * 0.01 + 57 * 4))
    assert answer.error == pytest.approx(np.hypot(cut.error, answer.cut))
    assert (cut.excess, cut.cut, cut.interval) == (0, 0, plain.sum(3, 60).interval)
    assert released.mean(3, 60).value == pytest.approx(answer.value / 57)
    assert released.mean(3, 60).interval[0] == pytest.approx(answer.interval[0] / 57)


def test_single_blocks_use_the_quantiles_of_laplace_noise():
    """Flat trees: one block's noise is Laplace, eight blocks' nearly normal. A normal quantile holds 93.8 %."""
    rng = np.random.default_rng(7)
    noise = TreeNoise(BlockLayout(64, 8), 8, True, 2 * 10.0**2, 0.0, Recent())
    hits, trees = {8: 0, 64: 0}, repetitions(1_500, 4_000)
    for _ in range(trees):
        values = np.repeat(rng.laplace(0, 10, 8), 8) / 8
        released = Released(values, noise, Grid(200), {"epsilon": 0.5})
        for length in hits:
            low, high = released.sum(0, length).interval
            hits[length] += low <= 0 <= high
    for length, count in hits.items():  # 5 standard errors of a share of 0.95
        assert abs(count / trees - 0.95) < 5 * np.sqrt(0.95 * 0.05 / trees), length


def test_complete_blocks_are_lines_between_their_sums_and_open_ones_stay_as_published():
    values = np.concatenate(
        (np.full(31, 2.0), [34.0], np.full(31, 3.0), [99.0], np.full(10, 6.0))
    )  # sums 96, 192, open
    released = blocked(values)
    assert released.sum(0, 8).value == pytest.approx(8 * 3)
    assert released.sum(24, 40).value == pytest.approx(8 * 3 + 8 * 6)
    assert released.sum(60, 70).value == pytest.approx(4 * 6 + 6 * 6)
    assert released.array().tolist() == values.tolist()
    part = Released(values[20:], released.covariance, released.grid, released.about, first=20)
    for start, stop in ((0, 5), (3, 40), (11, 12), (20, 54)):
        whole = released.sum(start + 20, stop + 20)
        assert part.sum(start, stop).value == pytest.approx(whole.value)
        assert part.sum(start, stop).stderr == pytest.approx(whole.stderr)
    last = Released(values[31:], released.covariance, released.grid, released.about, first=31)
    assert last.sum(0, 1).value == 34  # nothing here shows what was predicted
    assert last.sum(0, 1).stderr > released.sum(31, 32).stderr


@pytest.mark.parametrize("grid", [Grid(200), Grid(1.0, low=-1.0, resolution=0.01)])
def test_a_file_says_all_that_the_stream_knew(tmp_path, grid):
    noise = TreeNoise(BlockLayout(64, 8, end=100), 4, True, 3.5, 0.25, Exponential(0.5))
    stamps = np.datetime64("2024-01-01T00:00:00") + np.arange(100) * np.timedelta64(1, "s")
    released = Released(
        np.arange(100),
        noise,
        grid,
        {"epsilon": 0.5, "theta": 50},
        Truncation(50, 200, 0.01, 0.001, excess=0.5, excess_variance=0.1, excess_square=3.0),
        Smoothing(BlockLayout(64, 8, end=100), Roughness((1.0, 8.0), (4.0, 40.0))),
        stamps,
    )
    path = tmp_path / "private.parquet"
    released.save(path)
    again = Released.load(path)
    assert again.covariance == noise
    assert (again.truncation, again.smoothing, again.grid) == (released.truncation, released.smoothing, grid)
    assert again.about == released.about
    for name in ("value", "stderr", "smoothing", "truncation", "excess", "cut", "tails"):
        assert getattr(again.sum(3, 77), name) == pytest.approx(getattr(released.sum(3, 77), name), rel=1e-12)
    assert again.between("2024-01-01T00:00:05", "2024-01-01T00:00:09") == (5, 9)
    assert pd.read_parquet(path)["value"].sum() == pytest.approx(released.sum(0, 100, cut=True).value)
    total = duckdb.read_parquet(str(path)).sum("value").fetchall()[0][0]
    assert total == pytest.approx(released.sum(0, 100, cut=True).value)


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "plain.parquet"
    pd.DataFrame({"value": [1, 2]}).to_parquet(path)
    with pytest.raises(InvalidData, match="metadata"):
        Released.load(path)
    with pytest.raises(InvalidData, match="no file"):
        Released.load(tmp_path / "absent")
    (tmp_path / "text").write_text("value\n1\n")
    with pytest.raises(InvalidData, match="not a Parquet file"):
        Released.load(tmp_path / "text")


def test_a_file_whose_metadata_were_changed_is_damaged_and_one_without_a_seal_is_read(tmp_path):
    tops = dn.streams.ToPS(1.0, 100, warmup=100, horizon=1000, source=dn.SeededSource(1), simulation=True)
    tops.push_many([5, 6, 7, 8] * 100)
    table = tops.released.to_arrow()
    facts = json.loads(table.schema.metadata[b"deniable.stream"])

    def load(**changed):
        text = json.dumps({**facts, **changed}).encode()
        return dn.streams.Released.from_arrow(
            table.replace_schema_metadata({**table.schema.metadata, b"deniable.stream": text})
        )

    assert load().sum(0, 300) == tops.released.sum(0, 300)
    with pytest.raises(InvalidData, match="the released stream is damaged"):
        load(first=facts["first"] + 1)
    del facts["seal"]
    assert load().sum(0, 300) == tops.released.sum(0, 300)
    with pytest.raises(InvalidData, match="the released stream is damaged"):
        load(grid={"high": "x"})


def test_sums_that_press_against_the_threshold_are_noted_and_their_interval_is_open_upwards():
    """A tenfold shift behind the warm-up: θ is too low, and what is published says so."""
    rng = np.random.default_rng(2)
    calm = rng.geometric(0.2, 20_000)
    values = np.concatenate((calm, 20 * rng.geometric(0.2, 20_000)))
    settings = {"warmup": 4_000, "horizon": 2**17, "source": dn.SeededSource(1), "simulation": True}
    tops = dn.streams.ToPS(1.0, 1_000, **settings)
    tops.push_many(values)
    before, after = tops.released.mean(2_000, 10_000), tops.released.mean(22_000, 30_000)
    assert (before.note, before.beyond) == (None, 0)
    assert "press against θ" in after.note
    truth = values[26_000:34_000].mean()
    assert after.interval[0] < truth < after.interval[1]
    assert after.value + 5 * after.error < truth
    assert tops.released.mean(22_000, 30_000, cut=True).note is None
    for level in (calm, np.full(40_000, 7), rng.poisson(50 * (1 + 0.9 * np.sin(np.arange(40_000) / 900)))):
        other = dn.streams.ToPS(1.0, 500, **{**settings, "source": dn.SeededSource(3)})
        other.push_many(level)
        assert other.released.mean(0, len(other.released)).note is None
