"""People as the unit: what it costs that ε covers all that a person does within an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.randomness import SeededSource
from deniable.streams import PersonStream, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILONS = (0.5, 1.0, 2.0, 4.0)
EVENTS, PERSONS, WARMUP, BOUND = 32_768, 4_096, 4_096, 200
MOST = (1, 4, 16)
ONE_VALUE = "one value is protected"
WINDOW = 8_192
CHOSEN = "a person, as many as are best for 8"
_STYLES = ("s-C1", "o-C0", "^-C2", "v-C3", "d-C4")


def _name(most: int) -> str:
    return f"a person, {most} values counted" if most > 1 else "a person, one value counted"


HOW: dict[str, dict[str, Any]] = {ONE_VALUE: {}} | {_name(most): {"most": most} for most in MOST}
HOW[CHOSEN] = {"events": EVENTS / PERSONS}
"""Units, and what a stream of people is told about its events."""


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Units by ε."""
    return [{"data": "PERSONS", "unit": name, "epsilon": epsilon} for name in HOW for epsilon in EPSILONS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """Errors of means over windows, and how many intervals hold the truth."""
    random = np.random.default_rng(seed)
    values = np.minimum(random.geometric(1 / 7, EVENTS), BOUND)
    persons = random.integers(0, PERSONS, EVENTS).tolist()
    told, epsilon = HOW[str(setting["unit"])], float(setting["epsilon"])
    how: dict[str, Any] = {"warmup": WARMUP, "horizon": EVENTS, "source": SeededSource(seed), "simulation": True}
    if told:
        people = PersonStream(epsilon, BOUND, epoch=EVENTS, **told, **how)
        people.push_many(values, persons)
        released: Any = people.released
    else:
        single = ToPS(epsilon, BOUND, **how)
        single.push_many(values)
        released = single.released
    starts = np.arange(0, EVENTS - WARMUP - WINDOW + 1, 1_024)
    prefix = np.concatenate(([0], np.cumsum(values[WARMUP:])))
    truth = prefix[starts + WINDOW] - prefix[starts]
    answers = [released.sum(int(start), int(start) + WINDOW) for start in starts]
    off = np.array([answer.value for answer in answers]) / truth - 1
    inside = [answer.interval[0] <= true <= answer.interval[1] for answer, true in zip(answers, truth, strict=True)]
    return {"relative MSE": float(np.mean(off**2)), "covered": float(np.mean(inside))}


def plot(rows: Rows, figure: Any) -> None:
    """Errors by ε, one line for each unit."""
    axes = figure.subplots()
    for (unit, part), style in zip(rows.of("relative MSE").split("unit"), _STYLES, strict=True):
        axes.plot(part.column("epsilon"), 100 * np.sqrt(part.means), style, label=unit)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes.set_xlabel("ε")
    axes.set_ylabel(f"error of means over {WINDOW:,} values, %")
    add_legend(figure, [axes], columns=2)


def describe(rows: Rows) -> str:
    """Errors by unit and ε."""
    lines = []
    for unit, part in rows.split("unit"):
        error, covered = part.of("relative MSE"), part.of("covered")
        cells = [f"{np.sqrt(error.only(epsilon=epsilon).mean):.1%}" for epsilon in EPSILONS]
        lines.append([unit, *cells, f"{covered.means.mean():.0%}"])
    head = ["protected", *(f"ε = {epsilon:g}" for epsilon in EPSILONS), "covered"]
    return f"""Relative errors of means over {WINDOW:,} values, and how many 95 % intervals hold the truth over all ε:

{markdown_table(head, lines)}

A person has {EVENTS // PERSONS} events on average. Where fewer of them count, stand-ins take the place of the others.
Their mean is learnt from the warm-up with the small ε of one value, and its noise is then most of the error: single
releases can be far off. `events={EVENTS // PERSONS}` instead of `most` counts as many as are forecast to be best."""


EXPERIMENT = Experiment(
    "People as the unit",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(10, 50),
    size=(5.0, 3.4),
    setting=f"One epoch of {EVENTS:,} events, of which {WARMUP:,} are the warm-up.",
)
