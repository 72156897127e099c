"""`deniable reproduce` and `deniable bench peers` as a person meets them."""

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
    assert "POS stand-in: drawn, not real" in page
    assert "Halves are [1.0, 1.5]." in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["reproduce", "nonsense"], "NAME is not an experiment"),
        (["reproduce", "streams/fanout", "--data", "nowhere-at-all"], "--data is not a folder"),
    ],
)
def test_bad_input_exits_2(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


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
