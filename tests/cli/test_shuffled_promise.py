"""What `check --shuffled` says, and where it says that nothing can be said."""

import json

import pytest

import deniable as dn
from command_line import run


def checked(tmp_path, *arguments, table=None, **settings):
    table = table or dn.Table("users", age=dn.Ordinal(1, 95))
    path = tmp_path / "shop.toml"
    dn.Collection(table, epsilon=4.0, **settings).save(path)
    return run("check", path, *arguments)


def test_a_mixer_is_described_with_its_numbers(tmp_path):
    done = checked(tmp_path, "--shuffled", "100000")
    words = " ".join(done.stdout.split())
    assert "hands on 100,000 such messages in a random order" in words
    assert "at most ε = 0.235 with δ = 1e-09, instead of ε = 4." in words
    assert "Reports under user ids, as this collection sends them, are not mixed" in words
    assert max(map(len, done.stdout.splitlines())) <= 80
    few = json.loads(checked(tmp_path, "--shuffled", "10", "--delta", "1e-6", "--json").stdout)
    assert "at most ε = 4 with δ = 1e-06" in " ".join(few["promise"]["If a mixer shuffles"])
    assert "If a mixer shuffles" not in checked(tmp_path).stdout


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"table": dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())}, "public columns travel"),
        ({"name": "shop", "rounds": dn.Rounds(3, mode="fresh")}, "she answers several rounds"),
    ],
)
def test_where_nothing_can_be_said(tmp_path, settings, reason):
    words = " ".join(checked(tmp_path, "--shuffled", "100000", **settings).stdout.split())
    assert f"No claim: {reason}" in words
    assert "at most ε = 0" not in words


def test_rotating_rounds_that_she_answers_once_are_one_message(tmp_path):
    done = checked(tmp_path, "--shuffled", "100000", name="shop", rounds=dn.Rounds(12))
    assert "at most ε = 0.235" in " ".join(done.stdout.split())


@pytest.mark.parametrize("wrong", [("--shuffled", "0"), ("--shuffled", "10", "--delta", "0")])
def test_impossible_mixers_are_refused(tmp_path, wrong):
    done = checked(tmp_path, *wrong)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
