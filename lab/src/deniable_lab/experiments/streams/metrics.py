"""Other measures of the same runs: MAE, MMAE, MMSE  [WCZ21, Fig. 10]."""

from __future__ import annotations

from typing import Any

from deniable_lab.experiments.harness import Experiment, Rows
from deniable_lab.experiments.streams import overall
from deniable_lab.experiments.streams._publishing import EPSILONS, SETTING, legend_at_side, logs, spread
from deniable_lab.experiments.writing import markdown_table

METRICS = ("MAE", "MMAE", "MMSE")


def plot(rows: Rows, figure: Any) -> None:
    """One row of panels per measure, one column per stream."""
    names = [name for name, _ in rows.split("data")]
    grid = figure.subplots(len(METRICS), len(names), squeeze=False, sharex=True)
    for across, metric in zip(grid, METRICS, strict=True):
        for axes, name in zip(across, names, strict=True):
            for method, line in rows.of(metric).where(data=name).split("method"):
                form = overall.STYLES[method]["fmt"]
                axes.plot(line.column("epsilon"), line.means, form, markersize=2.5, label=method)
            logs(axes, EPSILONS)
        across[0].set_ylabel(metric)
    for axes, name in zip(grid[0], names, strict=True):
        axes.set_title(name)
    for axes in grid[-1]:
        axes.set_xlabel("ε")
    legend_at_side(figure)


def describe(rows: Rows) -> str:
    """Ratios in every measure, next to what the paper says of them."""
    lines = []
    for name, part in rows.split("data"):
        for other, base in (("NM-E", "ToPS (paper)"), ("PAK", "ToPS (paper)"), ("ToPS (paper)", "ours")):
            ratios = [part.of(m).where(method=other).means / part.of(m).where(method=base).means for m in METRICS]
            lines.append([f"{name}: {other} / {base}", *(spread(r.min(), r.max()) for r in ratios)])
    small = rows.of("MMAE").where(method="ToPS (paper)")
    large = rows.of("MMAE").where(method="PAK")
    where = ", ".join(
        f"{name} {spread(p.means.min(), p.means.max())} and {spread(q.means.min(), q.means.max())}"
        for (name, p), (_, q) in zip(small.split("data"), large.split("data"), strict=True)
    )
    absolute = rows.of("MAE")
    apart = {
        name: part.where(method="NM-E").means / part.where(method="ToPS (paper)").means
        for name, part in absolute.split("data")
    }
    same = ", ".join(name for name, ratio in apart.items() if ratio.max() < 1.5)
    return (
        f"Ratios over ε = {EPSILONS[0]:g} to {EPSILONS[-1]:g}:\n\n"
        + markdown_table(["", *METRICS], lines)
        + f"\n\nMMAE of ToPS and of PAK without the cap: {where}. The paper says as small as 1 for ToPS and 10^3 to "
        "10^4 for PAK. It also says that in MAE the better tree gives no better overall result (ToPS against NM-E). "
        f"That is so on {same or 'none of these'}, where what is cut away decides and not noise; elsewhere the better "
        "tree has the smaller absolute error too."
    )


EXPERIMENT = Experiment(
    "Absolute errors, and errors of means",
    "[WCZ21, Fig. 10]",
    overall.settings,
    overall.measure,
    plot,
    describe,
    repetitions=overall.EXPERIMENT.repetitions,
    size=(7.5, 5.0),
    setting=SETTING,
    runs_of="streams/overall",
)
