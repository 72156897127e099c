"""Reports of words: the exact law of a device and of the bulk client, and the cells that prefixes are."""

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.exact import exp_between
from deniable.randomness import SeededSource
from deniable.tables.bulk import bulk_client as bulk
from deniable.tables.bulk.column_encoding import REASONS, encode
from deniable.tables.bulk.word_columns import as_bytes, dummies, prefix_numbers
from deniable.tables.device import client as device
from deniable.tables.schema.placing import Unplaceable
from deniable.tables.schema.text import Text
from tables.enumeration import EnumeratedDevice, EnumeratedSource, law_of

WORDS = dn.Table("words", word=dn.Text(max_length=6))
VECTORS = Path(__file__).parents[1] / "golden" / "words.json"
MODULES = ("tables.device.client", "mechanisms.randomized_response", "mechanisms.subset_selection")


def as_codes(domain, words):
    return encode(domain, pa.array(words))[0]


def device_law(collection, word, monkeypatch):
    """What a device sends; None stands for a row without a word."""
    domain, design = collection["words"].domains[0], collection.design_of("words")
    rows = [] if word is None else [(domain.encode(word),)]

    def run(choose):
        dice = EnumeratedDevice(choose)
        dice.stand_in(monkeypatch, *MODULES)
        ((view, seed, y),) = device.randomise(collection["words"], design, rows, dice.randbelow)
        return int(view), int(seed), int(y)

    return law_of(run)


def bulk_law(collection, word):
    domain, design = collection["words"].domains[0], collection.design_of("words")
    codes = dummies(domain, 1, None) if word is None else as_codes(domain, [word])

    def run(choose):
        source = EnumeratedSource(choose)
        reports = bulk.randomise(collection["words"], design, [codes], np.ones(1, dtype=np.int64), source)
        return int(reports.view[0]), int(reports.seed[0]), int(reports.y[0])

    return law_of(run)


def test_no_two_words_are_told_apart_by_more_than_epsilon(monkeypatch):
    collection = dn.Collection(WORDS, epsilon=1.0)
    words = ["", "a", "ab", "abcdef", "zé", None]
    laws = [device_law(collection, word, monkeypatch) for word in words]
    assert laws == [bulk_law(collection, word) for word in words]
    outcomes = set(laws[0])
    assert all(set(law) == outcomes for law in laws)
    worst = max(max(law[o] for law in laws) / min(law[o] for law in laws) for o in outcomes)
    low, high = exp_between(Fraction(1), 40)
    assert worst <= high
    assert worst > low * (1 - Fraction(1, 10**6))


def test_a_view_is_drawn_by_its_level_and_the_last_one_is_likelier(monkeypatch):
    collection = dn.Collection(WORDS, epsilon=1.0)
    law = device_law(collection, "abc", monkeypatch)
    chances = [sum(chance for (view, _, _), chance in law.items() if view == number) for number in range(6)]
    assert chances == [*[Fraction(1, 7)] * 5, Fraction(2, 7)]


def vectors():
    """Words, and the numbers of their cells in every view; other languages have to get the same."""
    made = []
    for domain in (Text(6), Text(12, alphabet="abcdefghijklmnopqrstuvwxyz.")):
        design = dn.Collection(dn.Table("words", word=domain), epsilon=1.0).design_of("words")
        for word in ("", "a", "news", "www.a.", "zzzzzz"):
            cells = [view.group.number(view.levels, (domain.encode(word),)) for view in design]
            made.append({"text": domain.to_dict(), "word": word, "levels": list(domain.levels), "cells": cells})
    return made


def test_cells_are_those_of_the_vectors():
    assert json.loads(VECTORS.read_text()) == vectors()


@pytest.mark.parametrize("length", [1, 3, 4, 5, 8, 11])
def test_arrays_number_cells_as_devices_do(length):
    domain = Text(11)
    words = ["", "a", "b", "caffè", "日本語", "hello world"]
    view = list(dn.Collection(dn.Table("words", word=domain), epsilon=1.0).design_of("words"))[length - 1]
    assert view.levels == (length,)
    expected = [view.group.number(view.levels, (domain.encode(word),)) for word in words]
    assert prefix_numbers(as_bytes(as_codes(domain, words))[:, :length]).tolist() == expected


def test_words_are_placed_alike_on_devices_and_in_bulk():
    for domain in (Text(4), Text(4, alphabet="ab-]^\\")):
        words = ["", "ab", "a]^\\", "abcde", "tab\t", "\x7f", "été", "日本", None, "a-b"]
        _, problems = encode(domain, pa.array(words))
        expected = []
        for word in words:
            try:
                assert domain.decode(domain.encode(word)) == word
                expected.append("")
            except Unplaceable as problem:
                expected.append(problem.reason)
        assert [REASONS[number] for number in problems.tolist()] == expected


def test_a_specification_keeps_its_text(tmp_path):
    collection = dn.Collection(dn.Table("words", word=dn.Text(9, alphabet="cab")), epsilon=1.0)
    collection.save(tmp_path / "words.toml")
    again = dn.Collection.load(tmp_path / "words.toml")
    assert again == collection
    assert again["words"].domains[0].alphabet == "abc"
    assert collection != dn.Collection(dn.Table("words", word=dn.Text(9)), epsilon=1.0)


def test_rows_without_a_word_are_reported_and_counted():
    rows = {"uid": [1, 2, 3], "word": ["news", None, "x" * 50]}
    reports = dn.Collection(WORDS, epsilon=1.0).perturb(
        words=rows, source=SeededSource(1), simulation=True, max_rejected=1.0
    )
    assert len(reports.tables["words"]) == 3


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(vectors(), indent=1) + "\n")
