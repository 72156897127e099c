"""Aggregation of a sensitive attribute of one table: by volume, domain size, number of attributes  [XDW20, Fig. 6]."""

from __future__ import annotations

from typing import Any

from deniable.tables.schema.attributes import Categorical, Ordinal, Table
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.table_data import CATEGORIES, SIZE, syn1
from deniable_lab.experiments.tables._errors import AGGREGATES, AVG, Ask, Release, Study, errors, of_nothing, ranges
from deniable_lab.experiments.tables._grids import about_grid
from deniable_lab.experiments.tables._lines import LINES, OURS
from deniable_lab.experiments.tables._pictures import add_legend, draw_errors
from deniable_lab.experiments.writing import markdown_table

EPSILON = 2.0
VOLUMES = (0.04, 0.1, 0.15, 0.22, 0.3)
SIZES = (5, 25, 125, 250)
ATTRIBUTES = (2, 3, 4, 5)
VOLUME = 0.15
METHODS = ("HIO", "AHIO", "EHIO", "HIO-PUB", "AMG", "optimal", *OURS)
PANELS = {"volume": "volume", "m": "m of the summed attribute", "d": "attributes d"}


def settings(_: Data, quick: bool) -> list[Setting]:
    """All volumes share a release; m and d need releases of their own."""
    rows, queries, every = (250_000, 6, 2) if quick else (1_000_000, 20, 1)
    common: Setting = {"data": "SYN-1", "rows": rows, "queries": queries, "every": every}
    return [
        {**common, "panel": "volume", "m": SIZE, "d": 2},
        *({**common, "panel": "m", "m": m, "d": 2} for m in SIZES if m != SIZE),
        *({**common, "panel": "d", "m": SIZE, "d": d} for d in ATTRIBUTES if d != 2),
    ]


def study(rows: int, m: int, d: int) -> Study:
    """A table of d attributes, ordinal as long as there are any; the first has m values."""
    ordinals = min(d, 4)
    attributes: dict[str, Any] = {f"o{n}": Ordinal(1, m if n == 1 else SIZE) for n in range(1, ordinals + 1)}
    attributes |= {f"c{n}": Categorical(*range(1, CATEGORIES + 1)) for n in range(1, d - ordinals + 1)}
    frame = syn1(rows, ordinals, d - ordinals, m).select(["uid", *attributes])
    return Study({"people": frame}, (Table("people", **attributes),))


def measure(setting: Setting, seed: int, _: Data) -> Measured:
    """Errors of one release."""
    m, d, panel = int(setting["m"]), int(setting["d"]), str(setting["panel"])
    release = Release(study(int(setting["rows"]), m, d), EPSILON, seed)
    lines = [LINES[name] for name in METHODS if name != "AMG"]
    measured: list[tuple[Setting, dict[str, float]]] = []
    for volume in VOLUMES[:: int(setting["every"])] if panel == "volume" else (VOLUME,):
        drawn = ranges(volume, SIZE, int(setting["queries"]), seed=3)
        asks = [Ask("o1", {"o2": f"o2 BETWEEN {low} AND {high}"}) for low, high in drawn]
        rows = [*errors(release, lines, asks), *of_nothing(release.study, asks)]
        if d == 2:  # marginal release adds up all finest cells, 125 times as many for every further attribute
            rows += errors(release, [LINES["AMG"]], asks[::3])
        values: dict[str, float] = {"volume": volume} if panel == "volume" else {panel: float(setting[panel])}
        if panel == "volume" and volume == VOLUME:  # the same setting
            values |= {"m": m, "d": d}
        for name, value in values.items():
            measured += [({**more, "panel": name, "value": value}, numbers) for more, numbers in rows]
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """Aggregates from top to bottom; volume, m and d from left to right."""
    grid = figure.subplots(len(AGGREGATES), len(PANELS), sharex="col", sharey="row")
    for column, (panel, label) in enumerate(PANELS.items()):
        part = rows.where(panel=panel)
        values = sorted(set(part.column("value")))
        spots = {value: value if panel == "volume" else number for number, value in enumerate(values)}
        for axes, aggregate in zip(grid[:, column], AGGREGATES, strict=True):
            draw_errors(axes, part, [LINES[name] for name in METHODS], aggregate, "value", spots)
            axes.label_outer()
            if panel != "volume":
                axes.set_xticks(list(spots.values()), [f"{value:g}" for value in values])
        grid[-1, column].set_xlabel(label)
    add_legend(figure, grid.ravel())


def describe(rows: Rows) -> str:
    """The paper's observations, each with our numbers."""

    def at(panel: str, value: float, method: str, aggregate: str) -> float:
        quantity = "RE" if aggregate == AVG else "NMSE"
        return rows.of(quantity).only(panel=panel, value=value, method=method, aggregate=aggregate).mean

    def promised(panel: str, value: float, method: str, aggregate: str) -> float:
        return rows.of("stated").only(panel=panel, value=value, method=method, aggregate=aggregate).mean

    lines = [
        [method, *(f"{at('volume', VOLUME, method, aggregate):.2g}" for aggregate in AGGREGATES)]
        + [f"{promised('volume', VOLUME, method, aggregate):.2g}" for aggregate in AGGREGATES if aggregate != AVG]
        for method in METHODS
    ]
    head = [
        "volume 0.15, m = 125, d = 2",
        *(f"{aggregate}" for aggregate in AGGREGATES),
        "COUNT, stated",
        "SUM, stated",
    ]

    def growth(panel: str, method: str, aggregate: str) -> str:
        values = sorted(rows.where(panel=panel, method=method, aggregate=aggregate).of("stated").column("value"))
        return f"{promised(panel, values[-1], method, aggregate) / promised(panel, values[0], method, aggregate):.2g}"

    ahead = {
        name: promised("volume", VOLUME, name, "SUM") / promised("volume", VOLUME, "ours", "SUM")
        for name in ("AHIO", "EHIO", "HIO", "HIO-PUB")
    }

    def seen(method: str) -> str:
        row = rows.of("NMSE").only(panel="volume", value=VOLUME, method=method, aggregate="SUM")
        return f"{row.mean:.1e} ± {row.stderr:.1e}"

    widest = {name: promised("volume", VOLUMES[-1], name, "SUM") for name in ("AMG", "AHIO")}
    fewest = {name: promised("volume", VOLUMES[0], name, "SUM") for name in ("AMG", "AHIO")}
    better = [
        name
        for name in ("AHIO", "EHIO")
        if promised("volume", VOLUME, "HIO", "COUNT") < promised("volume", VOLUME, name, "COUNT")
    ]
    return f"""At one setting of the three panels:

{markdown_table(head, lines)}

NMSE for COUNT and SUM, median relative error for AVG; *stated* is what the answers' own standard errors promise
(lines in the picture; marks are measured). The paper prints no numbers here; what it says, with ours:

- *For COUNT, HIO is better than AHIO and EHIO.* It is better than {" and ".join(better) or "neither"}.
- *For SUM and AVG, AHIO and EHIO beat HIO.* SUM at volume 0.15: HIO {at("volume", VOLUME, "HIO", "SUM"):.2g}, AHIO
  {at("volume", VOLUME, "AHIO", "SUM"):.2g}, EHIO {at("volume", VOLUME, "EHIO", "SUM"):.2g}.
- *Volume hardly matters for COUNT and SUM, and AMG grows much faster.* From volume 0.04 to 0.3 the NMSE of SUM grows
  {growth("volume", "AHIO", "SUM")} times for AHIO and {growth("volume", "AMG", "SUM")} times for AMG; AMG over AHIO
  is {fewest["AMG"] / fewest["AHIO"]:.2g} at 0.04 and {widest["AMG"] / widest["AHIO"]:.2g} at 0.3.
- *m hardly matters for AHIO and EHIO, and much for HIO.* From m = 5 to 250 the NMSE of SUM grows
  {growth("m", "HIO", "SUM")} times for HIO, {growth("m", "AHIO", "SUM")} for AHIO, {growth("m", "EHIO", "SUM")} for
  EHIO.
- *All errors grow with d.* From d = 2 to 5 SUM: {growth("d", "HIO", "SUM")} times for HIO,
  {growth("d", "AHIO", "SUM")} for AHIO, {growth("d", "EHIO", "SUM")} for EHIO, {growth("d", "ours", "SUM")} for ours.
- *A public attribute is easier.* SUM of HIO-PUB is {ahead["AHIO"] / ahead["HIO-PUB"]:.2g} times better than AHIO and
  {ahead["EHIO"] / ahead["HIO-PUB"]:.2g} times better than EHIO. (COUNT is the same as HIO's.)
- **Ours**, for SUM at volume 0.15 and d = 2: a stated NMSE {ahead["AHIO"]:.2g} times smaller than AHIO's,
  {ahead["EHIO"]:.2g} than EHIO's, {ahead["HIO"]:.3g} than HIO's, and {ahead["HIO-PUB"]:.2g} than that of HIO-PUB,
  which does not hide the attribute at all. The last is not seen in measured errors: {seen("ours")} for ours and
  {seen("HIO-PUB")} for HIO-PUB. Adaptive oracles are a small part of it (*optimal* is without them).

{about_grid(rows)} From d = 2 to 5 the grid's
NMSE of SUM grows {at("d", 5, "grid", "SUM") / at("d", 2, "grid", "SUM"):.2g} times by measured errors and
{growth("d", "grid", "SUM")} times by stated ones (ours {growth("d", "ours", "SUM")}): it does not collect what nobody
is going to ask about. Every volume has a grid of its own.

Not reproduced: AMG for d above 2, whose questions need 125^(d−1) cells of every report. What the paper does not say
is assumed: the attribute summed is not the one in the predicate; attributes beyond the fourth are categorical, and
those are not summed, so that AHIO and EHIO divide users among at most four groups."""


EXPERIMENT = Experiment(
    "Aggregation of a sensitive attribute",
    "[XDW20, Fig. 6]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(2, 10),
    size=(7.5, 6.0),
    setting=(
        f"One table, ε = {EPSILON:g}, one range in the predicate; COUNT, SUM, AVG for random ranges; 10^6 rows and 20 "
        "ranges, with --quick 250,000 (the paper's smallest) and 6; AMG is asked a third of them."
    ),
)
