"""Ways to find θ, through the same tree and smoother  [WCZ21, Fig. 4]."""

from __future__ import annotations

from typing import Any

from deniable.streams import FixedPercentile, PAKPercentile, PaperScore, PredictedError, SmoothThreshold, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.ratios import Ratio, geometric_mean, ratio, ratios
from deniable_lab.experiments.streams._publishing import (
    EPSILONS,
    SETTING,
    curves,
    formats,
    published,
    short,
    simulated,
)
from deniable_lab.experiments.writing import markdown_table

PERCENTILES = (85, 90, 95, 99, 99.5, 99.9)
OURS = "noisy max, our score"
RULES: dict[str, Any] = {
    OURS: PredictedError(),
    "noisy max, Eq. (6)": PaperScore(),
    "smooth sensitivity, θ ≤ B": SmoothThreshold(),
    "PAK, θ ≤ B": PAKPercentile(),
} | {f"percentile {p:g} (not private)": FixedPercentile(p / 100) for p in PERCENTILES}
_FEWEST = {OURS: 40, "noisy max, Eq. (6)": 40, "PAK, θ ≤ B": 60, "percentile 99.9 (not private)": 40}
"""Enough repetitions for standard errors of a tenth."""
SHADES = ("0.8", "0.7", "0.55", "0.4", "0.25", "0.0")
STYLES = formats(list(RULES)[:4], ("o-C0", "s-C1", "v-C3", "D-C4"))
STYLES |= {rule: {"fmt": "--", "color": shade} for rule, shade in zip(list(RULES)[4:], SHADES, strict=True)}


def settings(data: Data, quick: bool) -> list[Setting]:
    """Rules by data and ε."""
    names = data.streams("POS", "DNS", "Kosarak") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [{"data": name, "epsilon": e, "rule": rule} for name in names for e in EPSILONS for rule in RULES]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """The paper's tree and smoother with another θ."""
    stream, rule = data.stream(str(setting["data"])), RULES[str(setting["rule"])]
    publisher = simulated(ToPS, float(setting["epsilon"]), stream, seed, paper=True, threshold=rule)
    errors = published(publisher, stream)
    return {"MSE": errors["MSE"], "theta": errors["theta"]}


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    curves(figure, rows.of("MSE"), "rule", STYLES, "MSE of a random range")


def _worst(parts: list[tuple[Any, Rows]], rule: str) -> Ratio:
    """The error of a rule as a multiple of the least of its cell, where that is largest."""
    cells = [cell for _, part in parts for _, cell in part.split("epsilon")]
    apart = (ratio(cell.only(rule=rule), min(cell, key=lambda row: row.mean)) for cell in cells)
    return max(apart, key=lambda quotient: quotient.mean)


def describe(rows: Rows) -> str:
    """The best percentile of each cell, and how far every rule is from the best of all."""
    errors, lines, best = rows.of("MSE"), [], []
    for rule in RULES:
        parts = (part for _, part in errors.split("data"))
        means = (geometric_mean(ratios(part.where(rule=rule), part.where(rule=OURS))) for part in parts)
        lines.append([rule, *(["1"] * len(errors.split("data")) if rule == OURS else means)])
    for name, part in errors.split("data"):
        each = []
        for epsilon, cell in part.split("epsilon"):
            fixed = {p: cell.only(rule=f"percentile {p:g} (not private)").mean for p in PERCENTILES}
            each.append(f"{min(fixed, key=lambda p: fixed[p]):g} at ε = {epsilon:g}")
        best.append(f"{name}: {', '.join(each)}.")
    worst = {p: _worst(errors.split("data"), f"percentile {p:g} (not private)") for p in PERCENTILES}
    safest = min(worst, key=lambda p: worst[p].mean)
    costliest = max(worst.values(), key=lambda quotient: quotient.mean)
    thetas = rows.of("theta").where(rule="noisy max, Eq. (6)")
    chosen = ", ".join(
        f"{name} {short(part.medians[0])} to {short(part.medians[-1])}" for name, part in thetas.split("data")
    )
    names = [name for name, _ in errors.split("data")]
    return (
        "MSE as a multiple of that of our score, geometric means over all ε; ± is one standard error:\n\n"
        + markdown_table(["rule", *names], lines)
        + f"\n\nMedian θ by noisy max on Eq. (6), from the smallest ε to the largest: {chosen}. The best percentile of "
        f"the six: {' '.join(best)} The paper's point is that no percentile is always right; the one that is least "
        f"wrong here is {safest:g}, at most {worst[safest]} times the least of a cell, and the wrong one costs up to "
        f"{costliest} times. Plain percentiles are not private. Smooth "
        "sensitivity and PAK are (ε, δ)-DP, noisy max is ε-DP."
    )


EXPERIMENT = Experiment(
    "Ways to find the threshold",
    "[WCZ21, Fig. 4]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(12, 40),
    fewest=lambda setting: _FEWEST.get(str(setting["rule"]), 1),
    size=(7.5, 3.2),
    setting=f"{SETTING} All with the paper's tree and smoother.",
)
