"""What an experiment leaves behind: a table of every number, a picture, and a page that says what was found."""

from __future__ import annotations

import csv
import textwrap
from pathlib import Path
from typing import Any

from deniable.figure import require_plotting
from deniable_lab.experiments.harness import Data, Experiment, Rows

_NUMBERS = ("quantity", "mean", "stderr", "median", "low", "high", "repetitions")
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "savefig.dpi": 150,
}


def write(name: str, experiment: Experiment, rows: Rows, data: Data, folder: Path, *, options: str) -> list[Path]:
    """The three files, by ending; `options` are those of the command that made them."""
    stem = folder / name
    stem.parent.mkdir(parents=True, exist_ok=True)
    table, picture, page = (stem.with_suffix(ending) for ending in (".csv", ".png", ".md"))
    write_table(rows, table)
    draw(experiment, rows, picture)
    page.write_text(describe(name, experiment, rows, data, options), encoding="utf-8")
    return [table, picture, page]


def write_table(rows: Rows, path: Path) -> None:
    """One line per setting and number; `low` and `high` are 5 % and 95 % of the repetitions."""
    columns = list(dict.fromkeys(column for row in rows for column in row.setting))
    with path.open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([*columns, *_NUMBERS])
        for row in rows:
            facts = [row.setting.get(column, "") for column in columns]
            numbers = [f"{number:.6g}" for number in (row.mean, row.stderr, row.median, row.low, row.high)]
            lines.writerow([*facts, row.quantity, *numbers, row.repetitions])


def draw(experiment: Experiment, rows: Rows, path: Path) -> None:
    """The picture, without a screen."""
    require_plotting()
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from PIL import Image

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=experiment.size, layout="constrained")
        FigureCanvasAgg(figure)
        experiment.plot(rows, figure)
        figure.savefig(path, metadata={"Software": None})
    # A palette of 256 colours looks the same and takes a third of the space.
    with Image.open(path) as picture:
        smaller = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    smaller.save(path, optimize=True)


def describe(name: str, experiment: Experiment, rows: Rows, data: Data, options: str) -> str:
    """The page: the setting, the data that were used, and what was found."""
    used = [about for source in dict.fromkeys(rows.column("data")) if (about := data.about(str(source)))]
    repetitions = sorted({row.repetitions for row in rows})
    counts = f"{repetitions[0]}" if len(repetitions) == 1 else f"{repetitions[0]} to {repetitions[-1]}"
    stem = name.partition("/")[2]
    parts = [
        f"# {experiment.title}\n\n{experiment.figure}, made by `deniable reproduce {name}{options}`: "
        f"[every number]({stem}.csv).",
        f"![{experiment.title}]({stem}.png)",
        f"**Setting.** {experiment.setting} Repetitions: {counts}, with seeds from 0; ± is one standard error.",
        "**Data.** " + " ".join(used),
        "**Findings.** " + textwrap.dedent(experiment.describe(rows)).strip(),
    ]
    return "\n\n".join(parts) + "\n"


def markdown_table(head: list[str], lines: list[list[Any]]) -> str:
    """A table of a page; the first column is text, the rest are numbers."""
    rule = ["---", *["---:"] * (len(head) - 1)]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in (head, rule, *lines))
