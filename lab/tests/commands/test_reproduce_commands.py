"""`deniable reproduce` and `deniable bench peers` as a person meets them."""

import re

import pytest

from command_line import run
from deniable_lab.commands import reproduce as command
from deniable_lab.experiments import harness
from deniable_lab.experiments.harness import Data, Experiment
from deniable_lab.experiments.running import run as measured


def made():
    return Experiment(
        "Halves",
        "[Fig. 0]",
        lambda data, quick: [{"data": data.streams("POS")[0], "x": x} for x in (1, 2)],
        lambda setting, seed, data: {"half": setting["x"] / 2 + seed},
        lambda rows, figure: figure.subplots().plot(rows.column("x"), rows.means),
        lambda rows: f"Halves are {rows.means.tolist()}.",
        repetitions=(2, 3),
    )


def test_experiments_are_listed_in_80_columns():
    done = run("reproduce")
    assert done.returncode == 0
    assert all(name in done.stdout for name in harness.experiments())
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_finished_runs_are_enough_for_tables_pictures_and_pages(monkeypatch, tmp_path):
    monkeypatch.setattr(harness, "experiments", lambda: {"streams/overall": made()})
    kept = tmp_path / command.FINISHED / "streams" / "overall.jsonl"
    measured("streams/overall", made(), Data(), quick=True, kept=kept)
    done = run("reproduce", "streams", "--quick", "-o", tmp_path, "--processes", 1)
    assert done.returncode == 0
    assert [line.rpartition(".")[2] for line in done.stdout.splitlines()] == ["csv", "png", "md"]
    page = (tmp_path / "streams" / "overall.md").read_text()
    assert "POS stand-in: synthetic, not real" in page
    assert "Halves are [1.0, 1.5]." in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nonsense"], "NAME is not an experiment"),
    ],
)
def test_bad_input_exits_2(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize("command", ["reproduce streams/fanout", "bench accuracy", "bench streams"])
def test_data_means_the_same_folder_everywhere(command, tmp_path):
    (tmp_path / "data" / "streams").mkdir(parents=True)
    (tmp_path / "file").touch()
    refused = {
        "nowhere-at-all": "--data is not a folder",
        "file": "--data is not a folder",
        "data/streams": "--data holds neither `streams` nor `tables`",
    }
    for folder, message in refused.items():
        done = run(*command.split(), "--data", tmp_path / folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"Error: {message}. " in done.stderr
        assert "Name the folder that holds both" in done.stderr


def test_files_that_a_benchmark_misses_are_named(tmp_path):
    for group in ("streams", "tables"):
        (tmp_path / group).mkdir()
    done = run("bench", "streams", "--part", "defaults", "--data", tmp_path)
    assert (done.returncode, "--data has no file streams/pos_length.parquet" in done.stderr) == (2, True)
    (tmp_path / "streams" / "pos_length.parquet").write_bytes(b"not Parquet")
    done = run("bench", "streams", "--part", "defaults", "--data", tmp_path)
    assert (done.returncode, "no readable file streams/pos_length.parquet with" in done.stderr) == (2, True)
    done = run("bench", "accuracy", "--grids", "--part", "households", "--data", tmp_path)
    assert (done.returncode, "--data has no file tables/cps_households.parquet" in done.stderr) == (2, True)


def test_parts_that_need_data_say_so_and_are_skipped():
    done = run("bench", "streams", "--part", "defaults")
    assert (done.returncode, done.stderr) == (0, "defaults: skipped, it needs --data\n")


def test_missing_peers_are_named_in_one_line_each(monkeypatch):
    from deniable_lab.benchmarks import peers

    monkeypatch.setattr(peers, "PEERS", {"ghost": "no_such_module", "phantom": "nor_this_one"})
    monkeypatch.setattr(peers, "jobs", lambda: iter(()))
    done = run("bench", "peers")
    assert done.returncode == 0
    assert done.stderr.splitlines()[:2] == [
        "ghost: not measured (no module 'no_such_module')",
        "phantom: not measured (no module 'nor_this_one')",
    ]


def test_times_of_peers_come_with_the_load_and_the_date_and_as_ranges_over_runs(monkeypatch):
    from deniable_lab.benchmarks import peers

    times = iter((20.0, 30.0, 20.0))
    monkeypatch.setattr(peers, "missing", dict)
    monkeypatch.setattr(peers, "measure", lambda *_: iter([peers.Row("noise", "OpenDP", 1.5, 0.04, 0.01, next(times))]))
    done = run("bench", "peers", "--runs", "2")
    *_, row, _, last = done.stdout.splitlines()
    assert row.split() == ["noise", "OpenDP", "1.5", "2k\N{EN DASH}3k", "10", "20k\N{EN DASH}30k"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d, 2 runs, load (\S+ on \d+ cores?) before and \S+ on \d+ cores? after", last)
    *_, row, _, last = run("bench", "peers").stdout.splitlines()
    assert row.split() == ["noise", "OpenDP", "1.5", "±", "4", "%", "2k", "10", "20k"]
    assert ", 1 run, load " in last
