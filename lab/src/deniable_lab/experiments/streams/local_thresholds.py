"""Thresholds without trust, from first reports  [WCZ21, Fig. 7]."""

from __future__ import annotations

from typing import Any

from deniable.streams import CutTail, LocalPercentile, NoThreshold, Reconstructed
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.ratios import geometric_mean, ratios
from deniable_lab.experiments.stream_reference import WARMUP
from deniable_lab.experiments.streams._local import EPSILONS, best_theta, expected, simulated
from deniable_lab.experiments.streams._publishing import curves, formats, short
from deniable_lab.experiments.writing import markdown_table

BEST = "best θ (not private)"
RULES: dict[str, dict[str, Any]] = {
    "ours": {},
    "EMS (paper)": {"rule": Reconstructed(), "scale": "linear"},
    "EMS, tail cut": {"rule": CutTail(), "scale": "linear"},
    "EMS, logarithmic scale": {"rule": Reconstructed()},
    "EM": {"rule": Reconstructed(smooth=False), "scale": "linear"},
    "EM, tail cut": {"rule": CutTail(smooth=False), "scale": "linear"},
    "percentile 95": {"rule": LocalPercentile(0.95)},
    "percentile 99.5": {"rule": LocalPercentile(0.995)},
    "none, θ = B": {"rule": NoThreshold()},
    BEST: {},
}
_FEWEST = (
    {"ours": 100} | dict.fromkeys(("EMS (paper)", "EM"), 60) | dict.fromkeys(("EMS, tail cut", "EM, tail cut"), 120)
)
"""Enough repetitions for standard errors of a tenth: a few large θ decide the mean errors of the paper's rule."""
STYLES = formats(RULES, ("o-C0", "s-C1", "v-C3", "D-C4", "s:C1", "v:C3", "--C7", ":C7", "x-C5", "-k"))


def settings(data: Data, quick: bool) -> list[Setting]:
    """Rules by data and ε."""
    names = data.streams("POS", "DNS", "Kosarak") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [{"data": name, "epsilon": e, "rule": rule} for name in names for e in EPSILONS for rule in RULES]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """θ from 65,536 first reports, and the error it leads to, which is computed and not sampled."""
    stream, epsilon = data.stream(str(setting["data"])), float(setting["epsilon"])
    if setting["rule"] == BEST:
        protocol = ToPLProtocol(epsilon, stream.bound)
        theta = best_theta(stream, protocol)
    else:
        topl = simulated(epsilon, stream, seed, **RULES[str(setting["rule"])])
        topl.publish(stream.values[:WARMUP])
        protocol, theta = topl.protocol, float(topl.theta or stream.bound)
    return {"MSE": expected(stream, protocol, theta), "theta": theta}


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    curves(figure, rows.of("MSE"), "rule", STYLES, "MSE of a random range", EPSILONS)


def describe(rows: Rows) -> str:
    """How far every rule is from the best θ."""
    errors, lines = rows.of("MSE"), []
    for rule in RULES:
        apart = [ratios(part.where(rule=rule), part.where(rule=BEST)) for _, part in errors.split("data")]
        lines.append([rule, *map(geometric_mean, apart)])
    thetas = []
    for name, part in rows.of("theta").split("data"):
        ours, best = part.where(rule="ours"), part.where(rule=BEST)
        pairs = (f"{short(a)} / {short(b)}" for a, b in zip(ours.medians, best.medians, strict=True))
        thetas.append(f"{name} {', '.join(pairs)}")
    against = [
        f"{name} {geometric_mean(ratios(part.where(rule=plain), part.where(rule=smooth)))}"
        for plain, smooth in (("EM", "EMS (paper)"), ("EM, tail cut", "EMS, tail cut"))
        for name, part in errors.split("data")
    ]
    half = len(against) // 2
    return (
        f"MSE as a multiple of that of the best of 50 θ, geometric means over ε = {EPSILONS[0]:g} to "
        f"{EPSILONS[-1]:g}; ± is one standard error:\n\n"
        + markdown_table(["rule", *(name for name, _ in errors.split("data"))], lines)
        + f"\n\nMedian θ of ours / best, by ε: {'; '.join(thetas)}. The paper takes the θ of least predicted error on "
        "the EMS estimate of the distribution, on a linear scale: the noise left in its tail decides. The authors' "
        "code takes EM without smoothing and drops the tail by rules that the paper does not have; `EM, tail cut` is "
        f"in that spirit. EM has {', '.join(against[:half])} times the error of EMS; with the tail cut it has "
        f"{', '.join(against[half:])} times. Our rule weighs all smooth distributions that explain the reports, on a "
        "logarithmic scale."
    )


EXPERIMENT = Experiment(
    "Thresholds without trust",
    "[WCZ21, Fig. 7]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(5, 40),
    fewest=lambda setting: _FEWEST.get(str(setting["rule"]), 1),
    size=(7.5, 3.2),
    setting="65,536 users send a square-wave report of their value, θ comes from these; 2^20 others then report under "
    "θ. Errors are those of sums over the same 200 random ranges.",
)
