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
from deniable.streams.released.windows import Truncation
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.smoother import Exponential
from deniable.streams.structure.value_grid import Grid


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
        smoothing=Smoothing(BlockLayout(64, 32), spread=2.0, drift=0.5),  # too few blocks to tell more
    )
    answer = released.sum(3, 60)
    assert answer.truncation == pytest.approx(57 * 0.012 * 20)
    assert answer.smoothing == pytest.approx(np.sqrt(3 * 2 * (1 + 3 / 32) + 9 / 2 + 28 * 2 * (1 + 28 / 32) + 28**2 / 2))
    assert answer.stderr == pytest.approx(np.sqrt(57 * 4))
    assert answer.interval[1] - answer.value == pytest.approx(
        1.96 * np.hypot(answer.stderr, answer.smoothing), rel=1e-3
    )
    assert released.sum(32, 64).smoothing == 0


@pytest.mark.parametrize("grid", [Grid(200), Grid(1.0, low=-1.0, resolution=0.01)])
def test_a_file_says_all_that_the_stream_knew(tmp_path, grid):
    noise = TreeNoise(BlockLayout(64, 8, end=100), 4, True, 3.5, 0.25, Exponential(0.5))
    stamps = np.datetime64("2024-01-01T00:00:00") + np.arange(100) * np.timedelta64(1, "s")
    released = Released(
        np.arange(100),
        noise,
        grid,
        {"epsilon": 0.5, "theta": 50},
        Truncation(50, 200, 0.01, 0.001),
        Smoothing(BlockLayout(64, 8, end=100), 2.0, 0.5),
        stamps,
    )
    path = tmp_path / "private.parquet"
    released.save(path)
    again = Released.load(path)
    assert again.covariance == noise
    assert (again.truncation, again.smoothing, again.grid) == (released.truncation, released.smoothing, grid)
    assert again.about == released.about
    for name in ("value", "stderr", "smoothing", "truncation"):
        assert getattr(again.sum(3, 77), name) == pytest.approx(getattr(released.sum(3, 77), name), rel=1e-12)
    assert again.between("2024-01-01T00:00:05", "2024-01-01T00:00:09") == (5, 9)
    assert pd.read_parquet(path)["value"].sum() == pytest.approx(released.sum(0, 100).value)
    total = duckdb.read_parquet(str(path)).sum("value").fetchall()[0][0]
    assert total == pytest.approx(released.sum(0, 100).value)


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
