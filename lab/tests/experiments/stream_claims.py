"""What the page of results claims about streams, computed from their CSVs: one function per finding."""

import numpy as np
from committed_results import committed

from deniable_lab.experiments import stream_reference
from deniable_lab.experiments.harness import experiments
from deniable_lab.experiments.ratios import geometric_mean, ratios

PAPER = "ToPS (paper)"
REAL = ("POS", "DNS")


def mean_ratio(experiment, quantity, column, above, below, data):
    """The geometric mean over ε of one line of a figure over another."""
    rows = committed(f"streams/{experiment}").of(quantity).where(data=data)
    return geometric_mean(ratios(*(rows.where(**{column: value}) for value in (above, below))))


def each(experiment, quantity, column, above, below, names):
    return [mean_ratio(experiment, quantity, column, above, below, data) for data in names]


def overall(above, below, *names):
    return each("overall", "MSE", "method", above, below, names)


def scaled(figure, unit):
    return f"{figure.mean / unit:.1f} ± {figure.stderr / unit:.1f}"


def ends(values):
    return np.min(values), np.max(values)


def preamble():
    papers = [experiment for name, experiment in experiments().items() if not name.startswith("beyond/")]
    runs = max(experiment.repetitions[1] for experiment in papers)
    yield "sums over {} random ranges", len(stream_reference.queries()[0])
    yield "there are up to {}", runs
    known = stream_reference.BOUNDS | stream_reference.OTHERS
    files = ("pos_length", "dns_google_rps", "kosarak_prefix_length", "nyc_green_taxi_fare_cents", "nasa_http_rps")
    bounds = [f"{known[file]:,}" for file in files]
    yield "POS {}, DNS {}, Kosarak {}, Fare {}; NASA has {}", *bounds
    epsilons = [
        f"{epsilon:g}"
        for name in ("overall", "local-thresholds")
        for epsilon in ends(committed(f"streams/{name}").column("epsilon"))
    ]
    yield "over ε = {} to {} ({} to {} without trust)", *epsilons


def order_of_methods():
    yield "NM-E has {} times the MSE of the paper's ToPS on POS and {} times on DNS", *overall("NM-E", PAPER, *REAL)
    rows = committed("streams/overall").of("MSE").where(data="POS", epsilon=0.01)
    tops, hc16 = rows.only(method=PAPER), rows.only(method="Ĥc16")
    theirs = stream_reference.TOPS["pos_length"][0.01], stream_reference.HC16["pos_length"][0.01]
    yield "{} and {}, times 10^9", scaled(tops, 1e9), scaled(theirs[0], 1e9)
    yield "Ĥc16 {} and {}, times 10^18", scaled(hc16, 1e18), scaled(theirs[1], 1e18)


def ahead_of_the_paper():
    ahead = overall(PAPER, "ours", *REAL, "Fare", "NASA")
    where = "on POS, {} times on DNS, {} times on Fare and {} times on NASA"
    yield f"The paper's ToPS has {{}} times the MSE of ours {where}", *ahead


def missing_cap():
    rows = committed("streams/overall").of("MSE")
    free, gone = [], []
    for data in REAL:
        paper, pak, capped = (
            np.log10(rows.where(data=data, method=method).means) for method in (PAPER, "PAK", "PAK, θ ≤ B")
        )
        free += [*(pak - paper)]
        gone += [*(pak - capped)]
    yield "We find {} to {} orders of magnitude between", f"{min(free):.0f}", f"{max(free):.0f}"
    yield "removes {} to {} of them", f"{min(gone):.0f}", f"{max(gone):.0f}"
    capped = overall("PAK, θ ≤ B", PAPER, *REAL, "Fare")
    yield "PAK has {} times the MSE of the paper's ToPS on POS, {} times on DNS and {} times on Fare", *capped
    yield "has {} times on POS with the cap", *overall("Ĥc16, θ ≤ B", PAPER, "POS")


def trees():
    def gain(worse, better):
        return each("hierarchies", "MSE", "tree", worse, better, REAL)

    yield "fan-out 16 instead of 2 gains {} and {} times", *gain("b = 2", "b = 16")
    yield "consistency {} and {} times", *gain("b = 16", "b = 16, consistent")
    yield "the smoother {} and {} times", *gain("b = 16, consistent", "… with smoother by Eq. (7)")
    yield "has {} and {} times the MSE of a binary chunk", *gain("b = 2, without end", "b = 2")
    exact = committed("streams/hierarchies").of("exact MSE")
    closed = [
        exact.where(data=data, tree="b = 2, without end").means / exact.where(data=data, tree="b = 2").means
        for data in REAL
    ]
    assert np.ptp(closed) < 0.05
    yield "({} times in closed form)", f"{np.mean(closed):.1f}"
    costs = committed("streams/fanout").of("exact")
    best = {part.rows[int(np.argmin(part.means))]["fanout"] for _, part in costs.split("consistent")}
    fanouts = sorted(set(costs.column("fanout")))
    assert len(best) == 1
    yield "{} is the best of {} fan-outs from {} to {} with", *best, len(fanouts), fanouts[0], fanouts[-1]


def not_reproduced():
    thetas = committed("streams/overall").of("theta").where(data="Fare")
    medians = [end for method in (PAPER, "ours") for end in ends(thetas.where(method=method).medians)]
    hundreds = [f"{round(median, -2):,.0f}" for median in medians]
    yield "the paper's θ is {} to {}, where that of ours is {} to {}", *hundreds

    def absolute(above, below, *names):
        return each("metrics", "MAE", "method", above, below, names)

    yield "NM-E has {} times the MAE of ToPS there", *absolute("NM-E", PAPER, "Fare")
    yield "NM-E has {} times the MAE of ToPS on POS and {} times on DNS", *absolute("NM-E", PAPER, *REAL)
    yield "PAK has {} and {} times that of Ĥc16", *absolute("PAK, θ ≤ B", "Ĥc16, θ ≤ B", *REAL)
    above = [
        part.of("Eq. (6)").means / np.sqrt(part.of("MSE, plain tree").means)
        for _, part in committed("streams/threshold-score").split("data")
    ]
    yield "and up to {} times above it where bias does", f"{np.max(above):.0f}"


def thresholds_and_smoothers():
    def over(rule):
        return each("thresholds", "MSE", "rule", rule, "noisy max, our score", (*REAL, "Kosarak"))

    paper = over("noisy max, Eq. (6)")
    yield "has {} times the MSE on POS, {} times on DNS and {} times on Kosarak; PAK", *paper
    yield "cap has {}, {} and {} times", *over("PAK, θ ≤ B")
    yield "which is not private, has {}, {} and {} times", *over("percentile 99.9 (not private)")
    means = committed("streams/smoothers").of("to recent").where(smoother="mean")
    better, (worse,) = [row for row in means if row.mean < 1], [row for row in means if row.mean >= 1]
    assert worse["data"] == "Fare"
    gains = [row.mean for row in better]
    numbers = f"{min(gains):.2f}", f"{max(gains):.2f}", len(better), len(means)
    yield "has {} to {} times its error in {} of {} cells", *numbers
    yield "each known to {}, and", f"{max(row.stderr for row in better):.2f}"
    numbers = f"{worse.mean:.2f} ± {worse.stderr:.2f}", f"{worse['block']:,}"
    yield "{} times where fares drift over blocks of {}", *numbers


def without_trust():
    def over(rule, other="best θ (not private)"):
        return each("local-thresholds", "MSE", "rule", rule, other, (*REAL, "Kosarak"))

    paper = over("EMS (paper)")
    yield "has {} times the error of the best θ on POS, {} times on DNS and {} times on Kosarak, because", *paper
    yield "EM without smoothing has {}, {} and {} times the error of EMS", *over("EM", "EMS (paper)")
    ours = over("ours")
    yield "Ours has {} times the error of the best θ on POS, {} times on DNS and {} times on Kosarak", *ours


def tails_cut():
    cut = each("local-thresholds", "MSE", "rule", "EM, tail cut", "EMS, tail cut", REAL)
    yield "in its own way, {} times in the mean of both", geometric_mean(cut)


def hybrid():
    computed = committed("streams/local-mechanisms").of("expected")
    less = [
        100 - 100 * piecewise.mean / hybrid.mean
        for piecewise, hybrid in zip(*(computed.where(mechanism=m) for m in ("piecewise", "hybrid")), strict=True)
        if piecewise["epsilon"] >= 2
    ]
    yield "piecewise alone has {} to {} % less error", f"{min(less):.0f}", f"{max(less):.0f}"


FINDINGS = (
    preamble,
    order_of_methods,
    ahead_of_the_paper,
    missing_cap,
    trees,
    not_reproduced,
    thresholds_and_smoothers,
    without_trust,
    tails_cut,
    hybrid,
)
KNOWN_TO = {
    **dict.fromkeys((order_of_methods, ahead_of_the_paper, missing_cap, trees, not_reproduced), 0.1),
    **dict.fromkeys((thresholds_and_smoothers, without_trust, tails_cut), 0.1),
}
"""How large the standard error of a ratio may be, as a share: headlines are known to a tenth, as it rounds."""
