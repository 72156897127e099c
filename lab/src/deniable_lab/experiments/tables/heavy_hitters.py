"""Words that nobody listed beforehand: which of the commonest are found, next to PEM and TreeHist at the same ε."""

from __future__ import annotations

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
WITHOUT = "NO-HITTERS"
OURS, PEM, TREE_HIST = "ours", "PEM", "TreeHist"
BASELINES = {PEM: prefix_extending, TREE_HIST: tree_histogram}
ASKED = "SELECT word, COUNT(*) AS n FROM words GROUP BY word ORDER BY n DESC"
FLAT_PEOPLE, FLAT_RUNS = 10_000, 60
"""Where everybody has another word, every listed word is a mistake: so many people, and releases."""


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Two kinds of words, three ε; and data in which no word is common."""
    people = PEOPLE // 10 if quick else PEOPLE
    drawn: list[Setting] = [
        {"data": name, "epsilon": epsilon, "people": people} for name in ("WORDS", "ADDRESSES") for epsilon in EPSILONS
    ]
    flat: list[Setting] = [{"data": WITHOUT, "epsilon": epsilon, "people": FLAT_PEOPLE} for epsilon in (2.0,)]
    return [*drawn, *flat]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """F1 of the k commonest words, method by method; or whether anything was listed that nobody has."""
    epsilon, people = float(setting["epsilon"]), int(setting["people"])
    if setting["data"] == WITHOUT:
        return {"false": float(_listed_of_nobody(epsilon, people, seed) > 0)}
    words = drawn_words(str(setting["data"]), people, 2 * seed + 1)  # odd: constants were looked at on even ones
    column = pa.array(words.listed).take(pa.array(words.held))
    table = dn.Table("words", word=dn.Text(words.max_length, alphabet=words.alphabet))
    collection = dn.Collection(table, epsilon=epsilon)
    rows = {"uid": np.arange(people), "word": column}
    answer = dn.connect(collection.perturb(words=rows, source=dn.SeededSource(seed), simulation=True)).sql(ASKED)
    ours = [str(word) for word in answer.groups["word"]]
    numbers, bits = as_bits(words)
    texts = dict(zip(numbers.tolist(), words.listed, strict=True))
    measured: list[tuple[Setting, dict[str, float]]] = []
    for k in WANTED:
        wanted = words.top(k)
        measured.append(({"k": k, "method": OURS}, _f1(ours[:k], wanted)))
        for name, method in BASELINES.items():
            random = np.random.default_rng([seed, k, len(name)])
            listed = method(words.held, numbers, bits, k, epsilon, random)
            measured.append(({"k": k, "method": name}, _f1([texts.get(word, str(word)) for word in listed], wanted)))
    return measured


def _f1(listed: list[str], wanted: set[str]) -> dict[str, float]:
    hits = len(set(listed) & wanted)
    return {"F1": 2 * hits / (len(listed) + len(wanted)), "precision": hits / max(len(listed), 1)}


def _listed_of_nobody(epsilon: float, people: int, seed: int) -> int:
    """How many words are listed that nobody has, where everybody has another one."""
    random = np.random.default_rng([seed, people])
    letters = random.integers(97, 123, (people, 8), dtype=np.uint8)
    held = letters.view("S8").ravel().astype(str).tolist()
    table = dn.Table("words", word=dn.Text(8, alphabet="abcdefghijklmnopqrstuvwxyz"))
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
                mine = rows.of("precision").only(data=data, epsilon=epsilon, k=k, method=OURS).mean
                shown = [f"{line.only(method=method).mean:.2f}" for method in (OURS, PEM, TREE_HIST)]
                lines.append([data.lower(), f"{epsilon:g}", str(k), *shown, f"{mine:.0%}"])
    runs = next(iter(rows.of("F1"))).repetitions
    flat = rows.of("false")
    told = ", ".join(f"{row.mean:.1%} of {row.repetitions} at ε = {row['epsilon']:g}" for row in flat)
    return f"""F1 of the k commonest words, {counted(runs, "release")} of each:

{markdown_table(["words", "ε", "k", "ours", "PEM", "TreeHist", "precision of ours"], lines)}

PEM counts {PEM_CANDIDATES:,} candidates in a step, twice as many as ours. TreeHist divides people where the paper
divides ε, and takes means where it takes medians; both have less noise.

Where everybody has another word ({FLAT_PEOPLE:,} people, words of 8 letters), releases that list a word nobody has:
{told}. Answers state at most 5%."""


EXPERIMENT = Experiment(
    "Words that nobody listed beforehand",
    "[WLJ21], [BNST17]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    fewest=lambda setting: FLAT_RUNS if setting["data"] == WITHOUT else 1,
    size=(7.0, 3.2),
    setting=(
        f"{PEOPLE:,} people, one word each. All methods know which characters words hold and how long they may be. "
        "Ours lists what passes its threshold, in the order of the estimates; the others always list k words."
    ),
)
