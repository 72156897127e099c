"""The harness: what runs add up to, going on after an interruption, and what is left behind."""

import csv
import math
import multiprocessing
import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable_lab.experiments.harness import Data, Experiment, experiments, named, summarise
from deniable_lab.experiments.ratios import geometric_mean, ratio
from deniable_lab.experiments.running import fingerprint, run, tasks, workers
from deniable_lab.experiments.writing import describe, write

CALLS = []


def settings(data, quick):
    return [{"data": "POS stand-in", "side": side} for side in ((1, 2) if quick else (1, 2, 3))]


def measure(setting, seed, data):
    CALLS.append((setting["side"], seed))
    return [({"power": power}, {"area": float(setting["side"] ** power + seed)}) for power in (1, 2)]


def plot(rows, figure):
    axes = figure.subplots()
    for power, line in rows.of("area").split("power"):
        axes.errorbar(line.column("side"), line.means, line.stderrs, label=power)


MADE = Experiment("Squares", "[Fig. 0]", settings, measure, plot, lambda rows: f"{len(rows)} rows.", repetitions=(3, 5))


def test_rows_are_means_with_standard_errors_over_repetitions(tmp_path):
    rows = run("streams/overall", MADE, Data(), quick=True, kept=tmp_path / "kept.jsonl")
    assert [(row["side"], row["power"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    row = rows.of("area").only(side=2, power=2)
    assert (row.mean, row.median, row.repetitions) == (5.0, 5.0, 3)
    assert row.stderr == pytest.approx(1 / math.sqrt(3))
    assert rows.where(power=1).means.tolist() == [2.0, 3.0]
    with pytest.raises(KeyError, match="2 rows"):
        rows.only(side=1)
    assert math.isnan(summarise([({"data": "x"}, [{"a": 1.0}])]).rows[0].stderr)


def test_finished_runs_are_not_repeated_and_a_cut_off_line_is(tmp_path):
    kept, steps = tmp_path / "kept.jsonl", []
    CALLS.clear()
    first = run("streams/overall", MADE, Data(), quick=True, kept=kept, advance=steps.append)
    assert len(CALLS) == len(tasks(MADE, Data(), True)) == 6
    assert sum(steps) == 6
    lines = kept.read_text().splitlines()
    kept.write_text("\n".join(lines[:4]) + "\n" + lines[4][:10])  # interrupted while writing
    CALLS.clear()
    again = run("streams/overall", MADE, Data(), quick=True, kept=kept)
    assert CALLS == [(2, 1), (2, 2)]
    assert again == first
    CALLS.clear()
    run("streams/overall", MADE, Data(), quick=False, kept=kept)  # the full run uses what the quick one found
    assert len(CALLS) == 15 - 6


def test_a_setting_may_have_more_repetitions_than_the_others(tmp_path):
    more = replace(MADE, fewest=lambda setting: 7 if setting["side"] == 2 else 1)
    assert Counter(setting["side"] for setting, _ in tasks(more, Data(), True)) == {1: 3, 2: 7}
    assert Counter(setting["side"] for setting, _ in tasks(more, Data(), False)) == {1: 5, 2: 7, 3: 5}
    assert Counter(setting["side"] for setting, _ in tasks(more, Data(), True, 6)) == {1: 6, 2: 7}
    rows = run("streams/overall", more, Data(), quick=True, kept=tmp_path / "kept.jsonl")
    assert rows.only(side=2, power=1).repetitions == 7
    assert "Repetitions: 3 to 7" in describe("streams/squares", more, rows, Data(), "")


def test_a_ratio_has_the_standard_error_that_repetitions_show():
    # Of 400 pairs of means, both known to 10 %, the ratios vary as one of them states: to 15 % of it at 4 deviations.
    rng = np.random.default_rng(5)
    pairs = rng.normal(1.0, 0.1 * math.sqrt(40), (400, 2, 40)) * np.array([[6.0], [2.0]])
    made = [
        ratio(*(summarise([({"data": "x"}, [{"a": value} for value in runs])]).rows[0] for runs in pair))
        for pair in pairs
    ]
    observed = np.std([quotient.mean for quotient in made])
    assert np.mean([quotient.mean for quotient in made]) == pytest.approx(3.0, rel=0.05)
    assert np.median([quotient.stderr for quotient in made]) == pytest.approx(observed, rel=0.15)
    mean = geometric_mean(made[:4])
    assert mean.mean == pytest.approx(math.prod(quotient.mean for quotient in made[:4]) ** 0.25)
    assert mean.stderr == pytest.approx(made[0].stderr / 2, rel=0.4)


def test_runs_of_other_code_or_data_are_not_used(tmp_path):
    assert fingerprint("streams/overall", Data()) == fingerprint("streams/overall", Data())
    (tmp_path / "streams").mkdir()
    assert fingerprint("streams/overall", Data()) != fingerprint("streams/overall", Data(tmp_path))
    assert fingerprint("streams/overall", Data()) != fingerprint("streams/smoothers", Data())


def test_files_are_written_and_say_what_they_show(tmp_path):
    rows = run("streams/overall", MADE, Data(), quick=True, kept=tmp_path / "kept.jsonl")
    table, picture, page = write("streams/squares", MADE, rows, Data(), tmp_path, options=" --quick")
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert len(lines) == 4
    assert lines[-1]["mean"] == "5"
    assert lines[-1]["repetitions"] == "3"
    assert picture.read_bytes().startswith(b"\x89PNG")
    text = page.read_text()
    assert "deniable reproduce streams/squares --quick`" in text
    assert "synthetic, not real" in text
    assert "4 rows." in text


def test_processes_give_the_same_numbers(tmp_path):
    made = experiments()["streams/fanout"]
    name, few = "streams/fanout", [{"data": "POS stand-in", "fanout": 3, "consistent": c} for c in (False, True)]
    short = Experiment("", "", lambda *_: few, made.measure, made.plot, made.describe, repetitions=(2, 2))
    here = run(name, short, Data(), quick=True, kept=tmp_path / "here.jsonl")
    with workers(1) as pool:
        there = run(name, short, Data(), quick=True, kept=tmp_path / "there.jsonl", pool=pool)
    assert here == there


def test_an_interruption_ends_the_workers():
    def interrupted():
        with workers(1) as pool:
            pool.submit(time.sleep, 3600)
            pool.submit(time.sleep, 3600)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not multiprocessing.active_children()


def test_every_file_in_the_folders_is_an_experiment():
    known = experiments()
    assert {"streams/overall", "streams/threshold-score", "streams/metrics"} <= set(known)
    for name, experiment in known.items():
        assert isinstance(experiment, Experiment)
        for quick in (True, False):
            listed = experiment.settings(Data(), quick)
            assert listed, name
            assert all(Data().about(setting["data"]) for setting in listed)
            assert len({str(sorted(setting.items())) for setting in listed}) == len(listed), name
    assert set(named("all")) == set(known)
    assert set(named("streams/overall")) == {"streams/overall"}
    assert set(named("streams")) == {name for name in known if name.startswith("streams/")}
    with pytest.raises(InvalidParameter, match="is not an experiment"):
        named("nonsense")


def test_stand_ins_are_the_same_everywhere_and_of_the_promised_kind():
    for name in Data().streams("POS", "DNS", "Kosarak", "Fare"):
        stream = Data().stream(name)
        assert name.endswith("stand-in")
        assert stream.values.size == 2**20 + 2**16
        assert stream.values.min() >= 0
        assert stream.values.max() <= stream.bound
    heavy = Data().stream("POS stand-in").values
    assert heavy.max() > 10 * np.quantile(heavy, 0.95) > 10 * heavy.mean()
    means = Data().stream("DNS stand-in").values.reshape(-1, 256).mean(axis=1)
    assert means.std() > 5 * Data().stream("DNS stand-in").values.std() / 16  # bursts last longer than one value
    halves = Data().stream("Fare stand-in").values.reshape(-1, 2**14).mean(axis=1)
    assert halves.max() > 1.8 * halves.min()


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="--data is not a folder"):
        Data(tmp_path / "nowhere")
    with pytest.raises(InvalidParameter, match="--data holds neither `streams` nor `tables`"):
        Data(tmp_path)
    (tmp_path / "tables").mkdir()
    assert Data(tmp_path).streams("POS") == ["POS stand-in"]
