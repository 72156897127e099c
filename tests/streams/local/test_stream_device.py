"""The client of a stream on a device: constant bytes, a memory, known answers, and nothing installed."""

import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import deniable
from deniable.client import StreamReport, ToPLClient
from deniable.errors import Failure, InvalidData, InvalidParameter, SimulationOnly
from deniable.randomness import SeededSource
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import SIZE

VECTORS = Path(__file__).parents[2] / "golden" / "stream_reports.json"


@pytest.mark.parametrize("theta", [None, 40.0])
def test_bytes_and_json_have_one_size_and_are_read_back(theta):
    sizes, lengths = set(), set()
    for value in (0, 1, 2.5, 499.999, 500, 10**400, -(10**400), float("inf"), float("nan"), None, Fraction(1, 3)):
        report = ToPLClient(1.0, 500).report(value, theta)
        sizes.add(len(report.to_bytes()))
        lengths.add(len(report.to_json("ann")))
        assert StreamReport.from_bytes(report.to_bytes()) == report
        assert StreamReport.from_json(report.to_json(17)) == (17, report)
    assert sizes == {SIZE} == {16}
    assert len(lengths) == 1


def test_asked_again_it_sends_the_same_bytes_whatever_the_value_is_now(tmp_path):
    for memory in (None, {}, tmp_path / "memory.json", str(tmp_path / "other.json")):
        client = ToPLClient(1.0, 500, memory)
        first = client.report(7)
        assert all(client.report(value, theta) == first for value, theta in ((7, None), (400, 40.0), (0, 500)))
        if memory is not None:
            assert ToPLClient(1.0, 500, memory).report(9, 12.0) == first  # another day, another process
        assert ToPLClient(1.0, 500, memory, name="other").report(7).tag != first.tag
    assert "bound" not in (tmp_path / "memory.json").read_text()


def test_a_damaged_memory_stops_everything(tmp_path):
    (tmp_path / "memory.json").write_text("{half")
    with pytest.raises(Failure, match="spend ε a second time"):
        ToPLClient(1.0, 500, tmp_path / "memory.json").report(7)


def test_odd_values_do_not_silence_the_device_and_are_counted_there():
    client = ToPLClient(1.0, 500)
    for value in (501, -1, float("nan"), None, 10):
        client.fresh(value)
    assert client.clipped == {"above the bound": 1, "below zero": 1, "not a number": 2}
    assert repr(client) == f"ToPLClient(protocol {client.protocol.sha256[:8]})"


@pytest.mark.parametrize("theta", [0, -1, 501, float("nan"), float("inf"), "40", True])
def test_an_impossible_threshold_is_refused_before_anything_is_sent(theta):
    memory = {}
    with pytest.raises(InvalidParameter, match="not above the bound 500"):
        ToPLClient(1.0, 500, memory).report(7, theta)
    assert memory == {}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"bound": float("inf")}, "bound"),
        ({"bound": 0}, "bound"),
        ({"bound": True}, "bound"),
        ({"scale": "cubic"}, "scale"),
        ({"mechanism": "magic"}, "mechanism"),
        ({"name": 7}, "name"),
        ({"grid": 0}, "cells"),
    ],
)
def test_impossible_settings_are_refused(settings, problem):
    with pytest.raises(InvalidParameter, match=problem):
        ToPLProtocol(**{"epsilon": 1.0, "bound": 500} | settings)


def test_a_seeded_source_is_refused():
    with pytest.raises(SimulationOnly):
        ToPLClient(1.0, 500, randbelow=SeededSource(1).randbelow)


def test_malformed_reports_are_refused():
    good = ToPLClient(1.0, 500).report(7).to_bytes()
    for data, message in (
        (b"short", "16 bytes"),
        (b"\x01" + good[1:], "version 1"),
        (good[:1] + b"\x03" + good[2:], "neither phase"),
    ):
        with pytest.raises(InvalidData, match=message):
            StreamReport.from_bytes(data)
    for text in ("", "[]", '{"uid": 1}', '{"uid": 1, "report": "zz"}', '{"uid": true, "report": "00"}'):
        with pytest.raises(InvalidData, match="JSON"):
            StreamReport.from_json(text)


def test_the_scale_and_its_inverse():
    for scale in ("log", "linear"):
        protocol = ToPLProtocol(1.0, 500, scale=scale)
        assert (protocol.position(0), protocol.position(500)) == (0.0, 1.0)
        for value in (0.01, 3.0, 77.7, 499.0):
            assert protocol.value(protocol.position(value)) == pytest.approx(value)


def test_settings_are_told_apart_by_what_they_are_not_by_how_they_are_written():
    assert ToPLProtocol(1, 500).sha256 == ToPLProtocol(1.0, 500.0).sha256
    others = [
        ToPLProtocol(2, 500),
        ToPLProtocol(1, 501),
        ToPLProtocol(1, 500, name="a"),
        ToPLProtocol(1, 500, scale="linear"),
    ]
    assert len({protocol.tag for protocol in (ToPLProtocol(1, 500), *others)}) == 5


def made_vectors():
    """Reports under known draws: for clients in other languages, which must get the same from the same draws."""
    vectors = []
    for epsilon in (0.5, 2.0):
        for theta in (None, 40.0):
            for value in (0, 7, 33.25, 600):
                source, draws = SeededSource(len(vectors)), []

                def randbelow(bound, source=source, draws=draws):
                    draws.append([str(bound), str(source.randbelow(bound))])
                    return int(draws[-1][1])

                sent = ToPLClient(epsilon, 500, randbelow=randbelow, name="baskets").report(value, theta)
                settings = {"epsilon": epsilon, "bound": 500, "name": "baskets"}
                asked = {"settings": settings, "value": value, "theta": theta}
                vectors.append(asked | {"draws": draws, "report": sent.to_bytes().hex()})
    return vectors


def test_the_committed_test_vectors_are_what_the_client_sends():
    assert json.loads(VECTORS.read_text()) == made_vectors()


SCRIPT = """
import sys
sys.path.insert(0, {source!r})
from deniable.client import ToPLClient
client = ToPLClient(2.0, 500, {memory!r})
print(client.report(31).to_json("u1"))
print(client.fresh(31, 40.0).to_json("u2")[:30])
for package in ("numpy", "pyarrow", "duckdb", "numba", "scipy", "cryptography", "click"):
    assert package not in sys.modules, package
    try:
        __import__(package)
    except ImportError:
        continue
    sys.exit("the interpreter is not bare")
"""


def test_it_runs_in_a_bare_interpreter(tmp_path):
    script = SCRIPT.format(source=str(Path(deniable.__file__).parents[1]), memory=str(tmp_path / "memory.json"))
    runs = [
        subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [run.stderr for run in runs] == ["", ""]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.splitlines()) == 2
