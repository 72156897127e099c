"""What the page of results claims about tables, computed from their CSVs: one function per finding or part of it."""

import numpy as np
from committed_results import committed

from deniable_lab.experiments.harness import experiments
from deniable_lab.experiments.tables import household_study, range_consistency, table_two
from deniable_lab.experiments.tables._errors import NOTHING
from deniable_lab.experiments.tables._grids import GRID, INFORMATIVE, OTHER, _cells, short

NAMES = [name for name in experiments() if name.startswith("tables/")]
SAMPLES = ("country", "west")


def ends(values, digits=".2g"):
    return format(np.min(values), digits), format(np.max(values), digits)


def preamble():
    releases = [row.repetitions for name in NAMES for row in committed(name)]
    yield "Quick runs have {} to {} releases", min(releases), max(releases)


def table_two_claims():
    rows = committed("tables/table-two")
    both, alone = (table_two.printed_over_own(rows, summed) for summed in table_two.TABLES)
    ours, rdc, grid, ahio, baseline = (
        np.concatenate([table_two.stderrs(rows, method, question) for question in table_two.QUESTIONS])
        for method in ("ours", "AHIO-RDC", GRID, "AHIO", "SR-HIO")
    )
    best = [min(table_two.PRINTED[q, epsilon]) for q in table_two.QUESTIONS for epsilon in table_two.EPSILONS]
    yield "printed over ours is {} to {}, median {},", *ends(both), f"{np.median(both):.3g}"
    yield "one group of users, the median is {}", f"{np.median(alone):.3g}"
    yield "{} to {} times smaller than those of AHIO-RDC", *ends(rdc / ours)
    yield "{} to {} times smaller than the best printed", *ends(best / ours)
    yield "is {} to {} times AHIO", *ends(baseline / ahio)
    spread = (*ends(ours / grid), f"{np.median(ours / grid):.2g}")
    yield "standard errors are {} to {} times those that it states (median {})", *spread
    yield "the measured ones are at most {} times what it states", f"{np.max(measured_over_stated()):.2g}"
    ours_ahead, grid_ahead = table_two.clearly_better(rows)
    assert not ours_ahead
    assert {cell.partition(" ")[0] for cell in grid_ahead} == {"Q3"}


def measured_over_stated():
    """Errors of the grid in every cell of Table 2."""
    rows = committed("tables/table-two")
    measured, stated = (
        np.concatenate(parts)
        for parts in zip(
            *(
                (table_two.measured_errors(rows, question), table_two.stderrs(rows, GRID, question))
                for question in table_two.QUESTIONS
            ),
            strict=True,
        )
    )
    return measured / stated


def attribute_claims():
    every = committed("tables/attribute-aggregation").where(aggregate="SUM")
    by_m = every.of("stated").where(panel="m")
    sizes = sorted(set(by_m.column("value")))
    grown = [
        by_m.only(method=method, value=sizes[-1]).mean / by_m.only(method=method, value=sizes[0]).mean
        for method in ("HIO", "AHIO", "EHIO")
    ]
    settings = [f"{size:g}" for size in (sizes[0], sizes[-1])]
    numbers = [f"{growth:.2g}" for growth in grown]
    yield "HIO grows {} times from m = {} to {} and they {} and {} times", numbers[0], *settings, *numbers[1:]
    rows = every.where(panel="volume", value=0.15)
    stated = {row["method"]: row.mean for row in rows.of("stated")}
    seen = {row["method"]: f"{row.mean:.1e} ± {row.stderr:.1e}" for row in rows.of("NMSE")}
    yield "is {} times smaller than AHIO's", f"{stated['AHIO'] / stated['ours']:.2g}"
    yield "{} times smaller than EHIO's", f"{stated['EHIO'] / stated['ours']:.0f}"
    public = f"{stated['HIO-PUB'] / stated['ours']:.2g}"
    yield "{} times smaller than HIO's when the summed attribute is not hidden", public
    yield "measured, ours is {} and HIO's {}", seen["ours"], seen["HIO-PUB"]


def range_claims():
    rows = committed("tables/range-consistency").of("stated")

    def gain(side, dq, how, aggregate="COUNT"):
        base = range_consistency.SIDES[side][0]
        part = rows.where(aggregated=side, dq=dq, aggregate=aggregate)
        return part.only(method=base).mean / part.only(method=how.replace("*", base)).mean

    everywhere = [(side, dq) for side in range_consistency.SIDES for dq in range_consistency.PREDICATES]
    gains = {
        each: [
            gain(side, dq, f"*-RDC, k = {k}{each}", aggregate)
            for side, dq in everywhere
            for k in ks
            for aggregate in ("COUNT", "SUM")
        ]
        for each, ks in (("", range_consistency.DECOMPOSITIONS), (" each", range_consistency.OF_EACH))
    }
    yield "gains {} to {} times", *ends(gains[""])
    yield "of each attribute gain up to {} times", f"{max(gains[' each']):.2g}"
    for how, words in (("k = 16", "k = 16 has"), ("k = 16 each", "k = 16 of each attribute")):
        ratios = [gain("not sensitive", dq, "ours") / gain("not sensitive", dq, f"HIO-RDC, {how}") for dq in (3, 4)]
        yield f"{words} {{}} and {{}}", *(f"{ratio:.2g}" for ratio in ratios)


def join_claims():
    every = committed("tables/joint-aggregation").of("stated").where(rows=100_000)
    rows = every.where(epsilon=5.0)

    def over(method, other, aggregate, value):
        part = rows.where(aggregate=aggregate, value=value)
        return part.only(method=method).mean / part.only(method=other).mean

    gains = [
        row.mean / every.only(**{**row.setting, "method": "HIO-JOIN-RDC"}).mean
        for row in every.where(method="HIO-JOIN")
        if row["aggregate"] in ("COUNT", "SUM") and row["value"] != "C"
    ]
    yield "{} to {} times in joins with a range", *ends(gains)
    split = {value: over("SC-JOIN", "HIO-JOIN", "SUM", value) for value in ("C", "CO", "C+O")}
    ours = {
        (aggregate, value): over("HIO-JOIN-RDC", "ours", aggregate, value)
        for aggregate in ("COUNT", "SUM")
        for value in ("CO", "C+O", 1)
    }
    worse = {value: f"{ratio:.2g}" for value, ratio in split.items()}
    yield "for a point ({} times)", worse["C"]
    yield "{} times worse for a point and a range on one table, {} times on two", worse["CO"], worse["C+O"]
    for aggregate in ("SUM", "COUNT"):
        ahead = [f"{ours[aggregate, value]:.2g}" for value in ("CO", "C+O", 1)]
        joins = "one to one ({} with a condition on each table) and {} times one to many"
        yield f"{{}} times for {aggregate} {joins}", *ahead


def household_claims():
    every = committed("tables/household-study").where(aggregate="COUNT")
    stated = every.of("stated")

    def share(method, sample, homes, epsilon=2.0):
        part = stated.where(method=method, sample=sample, homes=homes, epsilon=epsilon)
        return np.sqrt(part.means.mean() * part.rows[0]["rows"] / household_study.ROWS[sample])

    def shares(method, homes):
        return [f"{100 * share(method, sample, homes):.0f}" for sample in SAMPLES]

    survey = (*shares("HIO-JOIN", "survey"), *shares("ours", "survey"))
    yield "standard errors of {} % and {} % of all people, and ours of {} % and {} %", *survey
    truth = every.of("truth").where(homes="survey")
    largest = [max(part.means) / part.rows[0]["rows"] for part in (truth.where(sample=sample) for sample in SAMPLES)]
    yield "the largest group in the question has {} % and {} %", *(f"{100 * group:.0f}" for group in largest)
    large = (*shares("HIO-JOIN", "as in 1940"), *shares("ours", "as in 1940"))
    yield "become {} % and {} % (HIO-JOIN), {} % and {} % (ours)", *large
    seen = [share("ours", sample, "as in 1940") < group / 2 for sample, group in zip(SAMPLES, largest, strict=True)]
    assert seen == [False, True]  # "ours shows the largest group in the west"
    ratios = [
        share(method, sample, "survey", epsilon) / share(method, sample, "as in 1940", epsilon)
        for method in household_study.METHODS[:-1]
        for sample in SAMPLES
        for epsilon in household_study.EPSILONS
    ]
    yield "errors are {} to {} times smaller: they become", *ends(ratios, ".1f")
    ours = {f"{100 * share('ours', sample, 'survey', 5.0):.0f}" for sample in SAMPLES}
    rdc, hio = (
        [share(method, sample, "survey", 5.0) / share("ours", sample, "survey", 5.0) for sample in SAMPLES]
        for method in ("HIO-JOIN-RDC", "HIO-JOIN")
    )
    ahead = f"{np.mean(rdc):.2g}", *ends(hio)
    yield "ours are {} % of all people, {} times smaller than HIO-JOIN-RDC's and {} to {} times smaller", *ours, *ahead


def root(sample, method, epsilon):
    """The root mean square of measured errors of counts over age groups, in per cent of all people."""
    part = committed("tables/household-study").of("NMSE").where(homes="survey", aggregate="COUNT")
    return 100 * np.sqrt(part.where(sample=sample, method=method, epsilon=epsilon).means.mean())


def grid_gains(rows, aggregate, over=()):
    """How many times less NMSE the grid has than ours, in cells where it is informative."""
    part = rows.of("NMSE").where(aggregate=aggregate)
    grid, ours, nothing = (_cells(part.where(method=method), over) for method in (GRID, OTHER, NOTHING))
    return (ours / grid)[grid < INFORMATIVE * nothing]


def honesty(rows, over):
    """Measured NMSE of the grid over the stated one."""
    return np.concatenate([
        np.divide(*(_cells(rows.of(name).where(method=GRID, aggregate=aggregate), over) for name in ("NMSE", "stated")))
        for aggregate in ("COUNT", "SUM")
    ])  # fmt: skip


def grid_claims():
    west = [f"{root('west', GRID, 2.0):.1f}", f"{root('west', 'ours', 2.0):.0f}", f"{root('west', NOTHING, 2.0):.0f}"]
    yield "in the west are off by {} % of all people (ours {} %, saying 0 to everything {} %)", *west
    yield "by {} % (ours {} %). GROUP BY", f"{root('west', GRID, 5.0):.1f}", f"{root('west', 'ours', 5.0):.1f}"
    groups = committed("tables/group-by")
    counts, sums = (short(*grid_gains(groups, aggregate, ("group",))) for aggregate in ("COUNT", "SUM"))
    yield "has {} (COUNT) and {} times (SUM) less NMSE than ours. There", counts, sums
    homes = committed("tables/household-study").where(homes="survey")
    stated = np.concatenate([honesty(groups, ("group",)), honesty(homes, ("ages",))])
    yield "There its measured NMSE is {} to {} times what it states", *ends(stated, ".1f")
    joins = committed("tables/joint-aggregation").where(value="O")
    counts, sums = (grid_gains(joins, aggregate) for aggregate in ("COUNT", "SUM"))
    numbers = [short(end(gains)) for gains in (counts, sums) for end in (np.min, np.max)]
    yield "has {} to {} (COUNT) and {} to {} times (SUM) less NMSE than ours for ranges", *numbers
    for name, words in (
        ("attribute-aggregation", "{} to {} times less in tables of two to five attributes"),
        ("range-consistency", "{} to {} times less with one to four ranges in a table of four"),
    ):
        rows = committed(f"tables/{name}")
        gains = np.concatenate([grid_gains(rows, aggregate) for aggregate in ("COUNT", "SUM")])
        yield words, short(gains.min()), short(gains.max())
    country = [f"{root('country', method, 2.0):.1f}" for method in (GRID, NOTHING)]
    yield "(counts off by {} % and {} % of all people)", *country


FINDINGS = (preamble, table_two_claims, attribute_claims, range_claims, join_claims, household_claims, grid_claims)
