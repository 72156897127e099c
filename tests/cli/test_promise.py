"""`deniable check` says the whole promise: in words, as JSON, and as a page to sign."""

import html
import json
import math
import re

import pytest

import deniable as dn
from command_line import run
from deniable.promise import odds

USERS = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())


@pytest.fixture
def saved(tmp_path):
    def save(rounds=None, epsilon=2.0, **settings):
        name = None if rounds is None else "shop"
        dn.Collection(USERS, epsilon=epsilon, name=name, rounds=rounds, **settings).save(tmp_path / "shop.toml")
        return tmp_path / "shop.toml"

    return save


def words(*arguments):
    done = run("check", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    return " ".join(done.stdout.split())


def test_the_promise_of_a_collection_that_is_asked_once(saved):
    said = words(saved(epsilon=4.0))
    assert "She answers once in her life, and spends ε = 4." in said
    assert "can bet at most 55:1 afterwards" in said
    assert "Public columns: users.city." in said
    assert "That she takes part in users (one row per user)." in said
    assert "A liar may choose them" in said
    assert "Little privacy" not in said
    assert "a liar is left with his answer" in words(saved(epsilon=4.0, coins="assigned"))


def test_the_promise_of_each_kind_of_rounds(saved):
    rotating = words(saved(dn.Rounds(12, every="month", answers=2), epsilon=4.0))
    assert "One that she answers spends ε = 2." in rotating
    assert "She answers in 2 rounds of 12" in rotating
    assert "Over a lifetime any two people are told apart by at most ε = 4. " in rotating
    assert "at most 7.4:1 after one round, and at most 55:1 after all of them" in rotating
    assert "In which rounds she answers." in rotating
    covered = "In which rounds she answers, from whoever can read what she sends: covers say that they are covers."
    assert covered in words(saved(dn.Rounds(12, cover=True)))
    for cover in (False, True):
        public = words(saved(dn.Rounds(12, cover=cover), coins="assigned"))
        assert "In which rounds she answers: they follow from her id." in public
    lines = run("check", saved(dn.Rounds(12, every="month", answers=2), epsilon=4.0)).stdout.splitlines()
    assert not [line for line in lines if line.endswith((" ε", " =", "ε =")) or line.strip().startswith("= ")]
    fresh = words(saved(dn.Rounds(12, mode="fresh"), epsilon=1.0))
    assert "Over a lifetime any two people are told apart by at most ε = 12." in fresh
    assert "Little privacy: over a lifetime" in fresh  # above 8
    kept = dn.Rounds(3, mode="memoised", permanent=1.5, changes_are_public=True)
    memoised = words(saved(kept, epsilon=1.4, design="mg"))
    assert "Two people whose answers change in the same rounds are told apart by at most ε = 4.5." in memoised
    assert "every round adds at most ε = " in memoised
    assert "That and when she changed, beyond the numbers above." in memoised


def test_it_says_how_far_one_liar_moves_a_count(saved):
    drawn, assigned = (words(saved(epsilon=1.0, coins=coins)) for coins in ("drawn", "assigned"))
    alike = "and 1% of a million people who lie alike by"
    count = r"typical count \(SELECT COUNT\(\*\) FROM .*?\)"
    found = re.search(rf"{count} by ([\d.]+) people or more, and at most by ([\d.]+), {alike} ([\d,]+)", drawn)
    assert 10 < float(found[1]) < float(found[2]) < 200
    assert float(found[3].replace(",", "")) == pytest.approx(10_000 * float(found[1]), rel=0.01)
    bound = re.search(r"by ([\d.]+) people on average and at most by ([\d.]+), and 1% of a million", assigned)
    assert float(bound[1]) < float(bound[2]) <= float(found[2])
    # Where rounds rotate, whoever answers stands for twelve.
    rotating = re.search(r"by ([\d,.]+) people on average", words(saved(dn.Rounds(12), epsilon=1.0, coins="assigned")))
    assert float(rotating[1].replace(",", "")) == pytest.approx(12 * float(bound[1]), rel=0.02)


def test_it_says_what_other_modes_would_spend(saved):
    said = words(saved(dn.Rounds(12), epsilon=6.0, design="mg"))
    assert (
        "The same ε = 6 over a lifetime would also allow fresh rounds of ε = 0.5 each or memoised rounds of ε = "
        in said
    )
    assert "(for two people who change in the same rounds; for any two people ε = " in said
    kept = dn.Rounds(3, mode="memoised", permanent=1.5, changes_are_public=True)
    memoised = words(saved(kept, epsilon=1.4, design="mg"))
    assert (
        "The same ε = 4.5, but for any two people, would also allow rotating rounds of ε = 4.5 each or fresh rounds"
        in memoised
    )


def test_it_says_what_is_asked_and_in_which_rounds(saved, tmp_path):
    assert "What is asked In users, of one row: " in words(saved())
    orders = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9), paid=dn.Categorical("yes", "no"))
    path = str(tmp_path / "orders.toml")
    dn.Collection(orders, epsilon=1.0).save(path)
    assert "In orders, of 2 rows drawn from up to 3: amount, paid." in words(path)
    assert "in a round that is hers" in words(saved(dn.Rounds(12)))
    assert "in every round" in words(saved(dn.Rounds(12, mode="fresh")))


def test_without_noise_nothing_is_promised(saved):
    path = saved(epsilon=math.inf)
    refused = run("check", path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--simulation" in refused.stderr
    said = words(path, "--simulation")
    assert "No privacy: reports show the true values." in said
    assert "Nobody: reports show every row as it is" in said
    assert "Against whom" not in said


def test_only_tables_with_several_rows_hide_how_many(saved, tmp_path):
    assert "all tables together (users). " in words(saved())
    orders = dn.Table("orders", many=3, amount=dn.Ordinal(0, 9))
    dn.Collection(USERS, orders, epsilon=2.0).save(tmp_path / "both.toml")
    assert "(users, orders), and how many rows she has in orders." in words(tmp_path / "both.toml")


def test_json_and_the_page_say_the_same(saved, tmp_path):
    path = saved(dn.Rounds(12, mode="fresh"), epsilon=1.0)
    facts = json.loads(run("check", path, "--json", "--report", tmp_path / "page.html").stdout)
    loaded = dn.Collection.load(path)
    assert (facts["specification"], facts["version"]) == (loaded.sha256, dn.__version__)
    assert facts["epsilon"] == {"one_round": 1.0, "lifetime": 12.0}
    assert facts["public"] == {"users": ["city"]}
    page = (tmp_path / "page.html").read_text()
    text = html.unescape(re.sub("<[^>]+>", " ", page))
    for sentence in (*(line for lines in facts["promise"].values() for line in lines), *facts["warnings"]):
        assert " ".join(sentence.replace("`", " ").split()) in " ".join(text.split())
    assert "<code>perturb</code>" in page
    assert loaded.sha256 in page
    assert dn.__version__ in page
    assert "Signature" in page
    assert "<script" not in page
    assert "http" not in page
    failed = run("check", path, "--report", tmp_path / "nowhere" / "page.html")
    assert (failed.returncode, "cannot be written" in failed.stderr) == (1, True)


def test_odds_are_those_of_bayes():
    assert [odds(epsilon) for epsilon in (0.1, 1.0, 4.0, 8.0, 20.0, math.inf)] == [
        "1.1:1",
        "2.7:1",
        "55:1",
        "2,981:1",
        "e^20:1",
        "any odds",
    ]
