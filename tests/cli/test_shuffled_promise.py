"""What `check --shuffled` says, and where it says that nothing can be said."""

import json
import math

import pytest

import deniable as dn
from command_line import run
from deniable.shuffled_promise import rounded_up
from deniable.shuffling import shuffled_epsilon


def checked(tmp_path, *arguments, table=None, **settings):
    table = table or dn.Table("users", age=dn.Ordinal(1, 95))
    path = tmp_path / "shop.toml"
    dn.Collection(table, **{"ids": "pseudonym", "epsilon": 4.0, **settings}).save(path)
    return run("check", path, *arguments)


def test_a_mixer_is_described_with_its_numbers(tmp_path):
    done = checked(tmp_path, "--shuffled", "100000")
    words = " ".join(done.stdout.split())
    assert "hands on the messages of 100,000 people who report honestly, in a random order" in words
    assert "at most ε = 0.235 with δ = 1e-09, instead of ε = 4." in words
    assert "No user ids. A random name that her device drew for this collection" in words
    assert max(map(len, done.stdout.splitlines())) <= 80
    few = json.loads(checked(tmp_path, "--shuffled", "10", "--delta", "1e-6", "--json").stdout)
    assert "at most ε = 4 with δ = 1e-06" in " ".join(few["promise"]["If a mixer shuffles"])
    assert "If a mixer shuffles" not in checked(tmp_path).stdout


def test_the_number_that_is_shown_is_never_below_the_bound():
    for people in (10, 3_000, 77_777, 10**6):
        bound = shuffled_epsilon(4.0, people, 1e-9)
        assert bound <= float(rounded_up(bound)) <= bound * 1.01


def test_a_delta_that_promises_little_is_named(tmp_path):
    words = " ".join(checked(tmp_path, "--shuffled", "100", "--delta", "0.5").stdout.split())
    assert "This δ promises little: to show everything about one of 100 people" in words


def test_there_is_no_claim_for_reports_by_user_id(tmp_path):
    words = " ".join(checked(tmp_path, "--shuffled", "100000", ids="user").stdout.split())
    assert "No claim: reports travel under user ids" in words
    assert "0.235" not in words
    without = checked(tmp_path, "--shuffled", "100000", "--simulation", epsilon=math.inf)
    assert "No claim: reports without noise" in " ".join(without.stdout.split())


def test_rounds_under_one_name_count_as_one_message(tmp_path):
    done = checked(tmp_path, "--shuffled", "100000", name="shop", rounds=dn.Rounds(12))
    words = " ".join(done.stdout.split())
    assert "at most ε = 0.235" in words
    assert "same name in all rounds" not in words  # she answers once
    twice = dn.Rounds(12, answers=2)
    words = " ".join(checked(tmp_path, "--shuffled", "100000", name="shop", rounds=twice).stdout.split())
    assert "She has the same name in all rounds, so they count as one message" in words
    assert "at most ε = 0.235" in words  # of all that she ever spends


@pytest.mark.parametrize("wrong", [("--shuffled", "0"), ("--shuffled", "10", "--delta", "0")])
def test_impossible_mixers_are_refused(tmp_path, wrong):
    done = checked(tmp_path, *wrong)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
