"""Words that nobody listed beforehand: which of the commonest are found, next to PEM and TreeHist at the same ε."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import deniable as dn
from deniable.wording import counted
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._drawn_words import as_bits, drawn_words
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.tables._prefix_extending import PEM_CANDIDATES, prefix_extending
from deniable_lab.experiments.tables._tree_histogram import tree_histogram
from deniable_lab.experiments.writing import markdown_table

PEOPLE = 1_000_000
EPSILONS = (1.0, 2.0, 4.0)
WANTED = (32, 64)
SMALL = {"NO-HITTERS": 4_000, "FEW-LETTERS": 6_000}
"""People in the small releases: everybody has another word; or few words, of five letters."""
OURS, PEM, TREE_HIST = "ours", "PEM", "TreeHist"
ASKED = "SELECT word, COUNT(*) AS n FROM words GROUP BY word ORDER BY n DESC"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
SMALL_LENGTH, SMALL_RUNS = 6, {"NO-HITTERS": 200, "FEW-LETTERS": 400}
"""How often a word is listed that nobody has: words of up to so many letters, and releases of each setting."""


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Two kinds of words, three ε; and data in which no word is common."""
    people = PEOPLE // 10 if quick else PEOPLE
    drawn: list[Setting] = [
        {"data": name, "epsilon": epsilon, "people": people} for name in ("WORDS", "ADDRESSES") for epsilon in EPSILONS
    ]
    small: list[Setting] = [{"data": name, "epsilon": 2.0, "people": some} for name, some in SMALL.items()]
    return [*drawn, *small]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """F1 of the k commonest words, method by method; or whether anything was listed that nobody has."""
    epsilon, people = float(setting["epsilon"]), int(setting["people"])
    if setting["data"] in SMALL:
        return {"false": float(_listed_of_nobody(str(setting["data"]), epsilon, people, seed) > 0)}
    words = drawn_words(str(setting["data"]), people, 2 * seed + 1)  # odd: constants were looked at on even ones
    column = pa.array(words.listed).take(pa.array(words.held))
    table = dn.Table("words", word=dn.Text(words.max_length, alphabet=words.alphabet))
    collection = dn.Collection(table, epsilon=epsilon)
    rows = {"uid": np.arange(people), "word": column}
    answer = dn.connect(collection.perturb(words=rows, source=dn.SeededSource(seed), simulation=True)).sql(ASKED)
    ours = [str(word) for word in answer.groups["word"]]
    numbers, bits = as_bits(words)
    texts = dict(zip(numbers.tolist(), words.listed, strict=True))
    baselines: dict[str, Callable[..., list[int]]] = {
        PEM: prefix_extending,
        TREE_HIST: partial(tree_histogram, step=bits // words.max_length),
    }
    measured: list[tuple[Setting, dict[str, float]]] = []
    for k in WANTED:
        wanted = words.top(k)
        measured.append(({"k": k, "method": OURS}, _f1(ours[:k], wanted)))
        for name, method in baselines.items():
            random = np.random.default_rng([seed, k, len(name)])
            listed = method(words.held, numbers, bits, k, epsilon, random)
            measured.append(({"k": k, "method": name}, _f1([texts.get(word, str(word)) for word in listed], wanted)))
    return measured


def _f1(listed: list[str], wanted: set[str]) -> dict[str, float]:
    hits = len(set(listed) & wanted)
    right = {"precision": hits / max(len(listed), 1), "recall": hits / len(wanted)}
    return {"F1": 2 * hits / (len(listed) + len(wanted)), **right}


def _listed_of_nobody(data: str, epsilon: float, people: int, seed: int) -> int:
    """How many words are listed that nobody has."""
    random = np.random.default_rng([seed, people])
    if data == "NO-HITTERS":
        letters = random.integers(97, 123, (people, SMALL_LENGTH), dtype=np.uint8)
        held = letters.view(f"S{SMALL_LENGTH}").ravel().astype(str).tolist()
    else:
        lengths = random.integers(1, SMALL_LENGTH + 1, 500)
        listed = ["".join(random.choice(list(LETTERS[:5]), length)) for length in lengths.tolist()]
        chances = 1.0 / np.arange(1, 501)
        held = random.choice(listed, people, p=chances / chances.sum()).tolist()
    table = dn.Table("words", word=dn.Text(SMALL_LENGTH, alphabet=LETTERS))
    reports = dn.Collection(table, epsilon=epsilon).perturb(
        words={"uid": np.arange(people), "word": held}, source=dn.SeededSource(seed), simulation=True
    )
    return len({str(word) for word in dn.connect(reports).sql(ASKED).groups["word"]} - set(held))


def plot(rows: Rows, figure: Any) -> None:
    """F1 by ε, data by data."""
    known = rows.of("F1")
    axes = figure.subplots(1, 2, sharey=True)
    for panel, (data, part) in zip(axes, known.split("data"), strict=True):
        for number, (method, lines) in enumerate(part.split("method")):
            for k, line in lines.split("k"):
                style = "-" if k == WANTED[0] else ":"
                panel.plot(
                    line.column("epsilon"), line.means, f"C{number}o{style}", label=f"{method}, k = {k}", alpha=0.7
                )
        panel.set_xscale("log")
        panel.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        panel.minorticks_off()
        panel.set_xlabel(f"ε ({data.lower()})")
    axes[0].set_ylabel("F1")
    add_legend(figure, list(axes), columns=3)


def describe(rows: Rows) -> str:
    """All F1, the precision, and how often a word was listed that nobody has."""
    lines = []
    for data, part in rows.of("F1").split("data"):
        for epsilon, some in part.split("epsilon"):
            for k, line in some.split("k"):
                shown = [f"{line.only(method=method).mean:.2f}" for method in (OURS, PEM, TREE_HIST)]
                same = {"data": data, "epsilon": epsilon, "k": k}
                right = rows.of("precision").only(**same, method=OURS).mean
                recalls = [rows.of("recall").only(**same, method=method).mean for method in (OURS, PEM)]
                shares = [f"{right:.0%}", *(f"{each:.0%}" for each in recalls)]
                lines.append([data.lower(), f"{epsilon:g}", str(k), *shown, *shares])
    runs = next(iter(rows.of("F1"))).repetitions
    told = " and ".join(f"{row.mean:.1%} of {row.repetitions} releases" for row in rows.of("false"))
    titles = ["words", "ε", "k", "ours", "PEM", "TreeHist", "precision of ours", "found by ours", "by PEM"]
    return f"""F1 of the k commonest words, {counted(runs, "release")} of each, the share of listed words that are among
them, and the share of them that is listed:

{markdown_table(titles, lines)}

Both others are given more than their papers do: PEM counts {PEM_CANDIDATES:,} candidates in a step, 32 times as many as
ours. TreeHist divides people where the paper divides ε, takes means where it takes medians, and has a level for every
character instead of every bit. They always list k words; ours lists what passes its threshold.

A word that nobody has is listed in {told} at ε = 2, where everybody has another word and where 500 words are common.
Answers state at most 5%, which follows from the exact law of such a word's count."""


EXPERIMENT = Experiment(
    "Words that nobody listed beforehand",
    "[WLJ21], [BNST17]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    fewest=lambda setting: SMALL_RUNS.get(str(setting["data"]), 1),
    size=(7.0, 3.2),
    setting=(
        f"{PEOPLE:,} people, one word each. All methods know which characters words hold and how long they may be. "
        "Ours lists what passes its threshold, in the order of the estimates; the others always list k words."
    ),
)
