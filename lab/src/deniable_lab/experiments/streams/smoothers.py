"""Smoothers of the same noisy blocks  [WCZ21, Fig. 6, appendix D]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.streams import PublicThreshold, ToPS
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.smoother import Smoother, published_values, smoother_of
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_reference import WARMUP
from deniable_lab.experiments.streams._publishing import SETTING, panels, simulated
from deniable_lab.experiments.writing import markdown_table

NAMES = ("recent", "mean", "median", "moving", "exponential")


def smoothed(smoother: Smoother, totals: Floats, block: int, initial: float) -> Floats:
    """What a smoother publishes of noisy block sums."""
    layout = BlockLayout(totals.size * block, block)
    return published_values(np.rint(totals).astype(np.int64), layout, smoother, initial, over=0)


def settings(data: Data, quick: bool) -> list[Setting]:
    """Data, ε and block sizes; one run serves all smoothers."""
    names = data.streams("POS", "DNS", "Fare") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    cells = ((0.05, 4096), (0.05, 256), (0.1, 256))
    return [{"data": name, "epsilon": e, "block": block} for name in names for e, block in cells]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """The same noisy blocks through every smoother, against the stream cut at θ; each as a multiple of `recent`."""
    stream, block = data.stream(str(setting["data"])), int(setting["block"])
    theta = int(np.quantile(stream.values[:WARMUP], 0.95, method="inverted_cdf"))
    parts = {"threshold": PublicThreshold(theta), "paper": True, "block": block}
    publisher = simulated(ToPS, float(setting["epsilon"]), stream, seed, **parts)
    totals = publisher.push_many(stream.values).reshape(-1, block).sum(axis=1)
    errors = {name: stream.errors(smoothed(smoother_of(name), totals, block, theta / 2), theta).mse for name in NAMES}
    return [({"smoother": name}, {"MSE": mse, "to recent": mse / errors["recent"]}) for name, mse in errors.items()]


def plot(rows: Rows, figure: Any) -> None:
    """Ratios to `recent` in pairs of the same noise."""
    for axes, _, part in panels(figure, rows.of("to recent"), sharey=True):
        for group, (_, cell) in enumerate(part.split("epsilon")):
            for other, (block, line) in enumerate(cell.split("block")):
                at = np.arange(len(NAMES)) + 0.2 * (2 * group + other) - 0.2
                label = f"ε = {line.column('epsilon')[0]:g}, blocks of {block:,}"
                axes.errorbar(at, line.means, line.stderrs, fmt="o", label=label)
        axes.axhline(1.0, color="k", linewidth=0.6)
        axes.set_xticks(np.arange(len(NAMES)), NAMES, rotation=35)
    figure.axes[0].set_ylabel("MSE as a multiple of that of recent")
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)


def describe(rows: Rows) -> str:
    """The best smoother of each cell."""
    ratios, lines = rows.of("to recent"), []
    for name, part in ratios.split("data"):
        for epsilon, cells in part.split("epsilon"):
            for block, cell in cells.split("block"):
                others = [cell.only(smoother=smoother) for smoother in NAMES[1:]]
                lines.append(
                    [
                        f"{name}, ε = {epsilon:g}, blocks of {block:,}",
                        *(f"{r.mean:.2f} ± {r.stderr:.2f}" for r in others),
                    ]
                )
    means = ratios.where(smoother="mean").means
    better, gain, loss = int((means < 1).sum()), means.min(), means.max()
    return (
        "MSE as a multiple of that of `recent`, from the same noise:\n\n"
        + markdown_table(["", *NAMES[1:]], lines)
        + f"\n\nThe paper finds `recent` best, on spiky data. Here the mean of everything before is better in {better} "
        f"of {len(lines)} cells, by up to {100 - 100 * gain:.0f} %, because its prediction has less noise; at worst, "
        f"where a stream drifts, it has {loss:.2f} times the error. `recent` stays our default, since "
        "it loses little anywhere."
    )


EXPERIMENT = Experiment(
    "Smoothers of the same noisy blocks",
    "[WCZ21, Fig. 6]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(6, 40),
    setting=f"{SETTING} θ is the 95th percentile of the warm-up; errors are against the stream cut there.",
)
