"""Fan-outs from 2 to 64, with and without consistency  [WCZ21, Section 3.4]."""

from __future__ import annotations

from typing import Any

from deniable.streams import Hierarchy, PublicThreshold, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_reference import HORIZON
from deniable_lab.experiments.streams._publishing import SETTING, logs, published, simulated

EPSILON, THETA = 1.0, 64
FANOUTS = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64)
MEASURED = (2, 4, 8, 16, 32, 64)


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - noise does not depend on the data
    """Fan-outs with and without consistency."""
    name = data.streams("POS")[0]
    return [{"data": name, "fanout": b, "consistent": made} for made in (False, True) for b in FANOUTS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """V·(ε/θ)² of a random range: exactly, and for some measured on a published stream."""
    fanout, consistent = int(setting["fanout"]), bool(setting["consistent"])
    tree = Hierarchy(HORIZON, fanout, consistent)
    numbers = {"exact": 2 * tree.height**2 * tree.mean_variance(), "levels": float(tree.height)}
    if fanout in MEASURED:
        stream = data.stream(str(setting["data"]))
        parts = {"paper": True, "block": 1, "fanout": fanout, "consistent": consistent}
        publisher = simulated(ToPS, EPSILON, stream, seed, threshold=PublicThreshold(THETA), **parts)
        numbers["measured"] = published(publisher, stream, cut_at=THETA)["MSE"] * (EPSILON / THETA) ** 2
    return numbers


def plot(rows: Rows, figure: Any) -> None:
    """Two lines, and what was measured."""
    axes = figure.subplots()
    for consistent, colour, name in ((False, "C3", "as it is"), (True, "C0", "consistent")):
        line = rows.where(consistent=consistent)
        axes.plot(FANOUTS, line.of("exact").means, f"-{colour}", label=f"{name}, exact")
        dots = line.of("measured")
        axes.errorbar(dots.column("fanout"), dots.means, dots.stderrs, fmt=f"o{colour}", label=f"{name}, measured")
    logs(axes, MEASURED, xlabel="fan-out b", ylabel="variance of a random range · (ε/θ)²")
    axes.legend()


def describe(rows: Rows) -> str:
    """The best fan-outs."""
    plain, made = (dict(zip(FANOUTS, rows.of("exact").where(consistent=c).means, strict=True)) for c in (False, True))
    dots = rows.of("measured")
    apart = dots.means / [(made if row["consistent"] else plain)[int(row["fanout"])] for row in dots]
    best = [min(variances, key=lambda b: variances[b]) for variances in (plain, made)]
    return (
        f"Without consistency the least variance over r = 2^20 is at b = {best[0]} ({plain[best[0]]:.0f}/ε²; b = 16 "
        f"has {plain[16]:.0f}, b = 2 has {plain[2]:.0f}), with it at b = {best[1]} ({made[best[1]]:.0f}; b = 16 has "
        f"{made[16]:.0f}, b = 2 has {made[2]:.0f}). The paper takes b = 16. The lines are not smooth because 16^5 and "
        "32^4 are 2^20, while other fan-outs waste part of a level: which is best depends on r. Consistency is worth "
        f"{plain[16] / made[16]:.1f} times at b = 16 and {plain[2] / made[2]:.1f} times at b = 2. Measured variances "
        f"are {apart.min():.2f} to {apart.max():.2f} times the exact ones, over {dots.rows[0].repetitions} trees each "
        "with the same 200 ranges."
    )


EXPERIMENT = Experiment(
    "Fan-outs from 2 to 64",
    "[WCZ21, Section 3.4]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(3, 40),
    size=(5.0, 3.2),
    setting=f"{SETTING} θ = {THETA}, given; variances do not depend on the data. Levels share ε evenly.",
)
