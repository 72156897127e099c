"""What the page of results claims about tables, computed from their CSVs: one function per finding or part of it."""

import math

from committed_results import committed

from deniable_lab.experiments.harness import experiments
from deniable_lab.experiments.ratios import Ratio, average, extremes, geometric_mean, ratio, root
from deniable_lab.experiments.stream_reference import Figure
from deniable_lab.experiments.tables import household_study, range_consistency, table_two
from deniable_lab.experiments.tables._errors import NOTHING
from deniable_lab.experiments.tables._grids import GRID, INFORMATIVE, OTHER

NAMES = [name for name in experiments() if name.startswith("tables/")]
SAMPLES = ("country", "west")
TEN_RELEASES = 1 / math.sqrt(2 * 9)
"""The relative standard error of a standard deviation of ten releases, as [XDW20] prints them."""


def preamble():
    others = ("tables/star-schema", "tables/heavy-hitters")  # which the pages about the papers do not count
    papers = [name for name in NAMES if name not in others]
    releases = [row.repetitions for name in papers for row in committed(name)]
    yield "These runs have {} to {} releases", min(releases), max(releases)


def errors(rows, method, quantity="variance", summed=table_two.BOTH):
    """The errors of Table 2 in every cell, as root mean squares for the paper's number of rows."""
    return [
        root(Figure(row.mean * row["rows"] / table_two.PAPER_ROWS, row.stderr * row["rows"] / table_two.PAPER_ROWS))
        for question in table_two.QUESTIONS
        for row in rows.of(quantity).where(method=method, question=question, summed=summed)
    ]


def over(above, below):
    return [ratio(*pair) for pair in zip(above, below, strict=True)]


def printed_over_own(rows, summed):
    cells = []
    for number, method in enumerate(table_two.METHODS[:4]):
        own = errors(rows, method, summed=summed if method in table_two.GROUPED else table_two.BOTH)
        printed = [table_two.PRINTED[q, epsilon][number] for q in table_two.QUESTIONS for epsilon in table_two.EPSILONS]
        cells += over([Figure(figure, figure * TEN_RELEASES) for figure in printed], own)
    return cells


def table_two_claims():
    rows = committed("tables/table-two")
    both, alone = (printed_over_own(rows, summed) for summed in table_two.TABLES)
    ours, rdc, ahio, baseline = (errors(rows, method) for method in ("ours", "AHIO-RDC", "AHIO", "SR-HIO"))
    printed = [min(table_two.PRINTED[q, epsilon]) for q in table_two.QUESTIONS for epsilon in table_two.EPSILONS]
    best = over([Figure(figure, figure * TEN_RELEASES) for figure in printed], ours)
    yield "printed over ours is {} in the geometric mean of 48 cells ({} to {})", geometric_mean(both), *extremes(both)
    yield "one group of users, it is {}", geometric_mean(alone)
    yield "{} to {} times smaller than those of AHIO-RDC", *extremes(over(rdc, ours))
    yield "{} to {} times smaller than the best printed", *extremes(best)
    yield "is {} to {} times AHIO", *extremes(over(baseline, ahio))


def spiky_claims():
    rows = committed("tables/table-two")
    ours, grid = (errors(rows, method) for method in ("ours", GRID))
    yield "Our standard errors are {} times those that it states", geometric_mean(over(ours, grid))
    yield "Its measured errors are {} times what it states", geometric_mean(measured_over_stated())


def measured_over_stated():
    """Errors of the grid in every cell of Table 2."""
    rows = committed("tables/table-two")
    return over(errors(rows, GRID, "square"), errors(rows, GRID))


def attribute_claims():
    every = committed("tables/attribute-aggregation").where(aggregate="SUM")
    by_m = every.of("stated").where(panel="m")
    sizes = sorted(set(by_m.column("value")))
    grown = [
        ratio(by_m.only(method=method, value=sizes[-1]), by_m.only(method=method, value=sizes[0]))
        for method in ("HIO", "AHIO", "EHIO")
    ]
    settings = [f"{size:g}" for size in (sizes[0], sizes[-1])]
    yield "HIO grows {} times from m = {} to {} and they {} and {} times", grown[0], *settings, *grown[1:]
    rows = every.where(panel="volume", value=0.15)
    stated = {row["method"]: row for row in rows.of("stated")}
    seen = {row["method"]: f"{row.mean:.1e} ± {row.stderr:.1e}" for row in rows.of("NMSE")}
    yield "is {} times smaller than AHIO's", ratio(stated["AHIO"], stated["ours"])
    yield "{} times smaller than EHIO's", ratio(stated["EHIO"], stated["ours"])
    public = ratio(stated["HIO-PUB"], stated["ours"])
    yield "{} times smaller than HIO's when the summed attribute is not hidden", public
    yield "measured, ours is {} and HIO's {}", seen["ours"], seen["HIO-PUB"]


def range_claims():
    rows = committed("tables/range-consistency").of("stated")

    def gain(side, dq, how, aggregate="COUNT", base=None):
        base = base or range_consistency.SIDES[side][0]
        part = rows.where(aggregated=side, dq=dq, aggregate=aggregate)
        return ratio(part.only(method=base), part.only(method=how.replace("*", base)))

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
    yield "gains {} to {} times", *extremes(gains[""])
    yield "of each attribute gain up to {} times", extremes(gains[" each"])[1]
    for how, words in (("k = 16", "k = 16 has"), ("k = 16 each", "k = 16 of each attribute")):
        yield f"{words} {{}} and {{}}", *(gain("not sensitive", dq, "ours", base=f"HIO-RDC, {how}") for dq in (3, 4))


def join_claims():
    every = committed("tables/joint-aggregation").of("stated").where(rows=100_000)
    rows = every.where(epsilon=5.0)

    def quotient(method, other, aggregate, value):
        part = rows.where(aggregate=aggregate, value=value)
        return ratio(part.only(method=method), part.only(method=other))

    gains = [
        ratio(row, every.only(**{**row.setting, "method": "HIO-JOIN-RDC"}))
        for row in every.where(method="HIO-JOIN")
        if row["aggregate"] in ("COUNT", "SUM") and row["value"] != "C"
    ]
    yield "{} to {} times in joins with a range", *extremes(gains)
    worse = {value: quotient("SC-JOIN", "HIO-JOIN", "SUM", value) for value in ("C", "CO", "C+O")}
    yield "for a point ({} times)", worse["C"]
    yield "{} times worse for a point and a range on one table, {} times on two", worse["CO"], worse["C+O"]
    for aggregate in ("SUM", "COUNT"):
        ahead = [quotient("HIO-JOIN-RDC", "ours", aggregate, value) for value in ("CO", "C+O", 1)]
        joins = "one to one ({} with a condition on each table) and {} times one to many"
        yield f"{{}} times for {aggregate} {joins}", *ahead


def household_claims():
    every = committed("tables/household-study").where(aggregate="COUNT")
    stated = every.of("stated")

    def share(method, sample, homes, epsilon=2.0):
        part = stated.where(method=method, sample=sample, homes=homes, epsilon=epsilon)
        scale = part.rows[0]["rows"] / household_study.ROWS[sample]
        return root(average(Figure(row.mean * scale, row.stderr * scale) for row in part))

    def shares(method, homes):
        return [f"{100 * share(method, sample, homes).mean:.0f}" for sample in SAMPLES]

    survey = (*shares("HIO-JOIN", "survey"), *shares("ours", "survey"))
    yield "standard errors of {} % and {} % of all people, and ours of {} % and {} %", *survey
    truth = every.of("truth").where(homes="survey")
    largest = [max(part.means) / part.rows[0]["rows"] for part in (truth.where(sample=sample) for sample in SAMPLES)]
    yield "the largest group in the question has {} % and {} %", *(f"{100 * group:.0f}" for group in largest)
    large = (*shares("HIO-JOIN", "as in 1940"), *shares("ours", "as in 1940"))
    yield "become {} % and {} % (HIO-JOIN), {} % and {} % (ours)", *large
    seen = [
        share("ours", sample, "as in 1940").mean < group / 2 for sample, group in zip(SAMPLES, largest, strict=True)
    ]
    assert seen == [False, True]  # "ours shows the largest group in the west"
    smaller = [
        ratio(share(method, sample, "survey", epsilon), share(method, sample, "as in 1940", epsilon))
        for method in household_study.METHODS[:-1]
        for sample in SAMPLES
        for epsilon in household_study.EPSILONS
    ]
    yield "errors are {} to {} times smaller: they become", *extremes(smaller)
    ours = {f"{100 * share('ours', sample, 'survey', 5.0).mean:.0f}" for sample in SAMPLES}
    rdc, hio = (
        [ratio(share(method, sample, "survey", 5.0), share("ours", sample, "survey", 5.0)) for sample in SAMPLES]
        for method in ("HIO-JOIN-RDC", "HIO-JOIN")
    )
    ahead = geometric_mean(rdc), *extremes(hio)
    yield "ours are {} % of all people, {} times smaller than HIO-JOIN-RDC's and {} to {} times smaller", *ours, *ahead


def share_of_people(sample, method, epsilon, quantity="stated"):
    """The root mean square of errors of counts over age groups, in per cent of all people."""
    part = committed("tables/household-study").of(quantity).where(homes="survey", aggregate="COUNT")
    share = root(average(part.where(sample=sample, method=method, epsilon=epsilon)))
    return Ratio(100 * share.mean, 100 * share.stderr)


def cells(rows, method, over=()):
    """Mean squares by setting, averaged over some columns."""
    grouped = {}
    for row in rows.where(method=method):
        key = repr(sorted((name, value) for name, value in row.setting.items() if name not in {*over, "method"}))
        grouped.setdefault(key, []).append(row)
    return {key: average(parts) for key, parts in grouped.items()}


def grid_gains(rows, aggregates=("COUNT", "SUM"), over=()):
    """How many times less NMSE the grid states than ours, in cells where it is informative."""
    gains = []
    for aggregate in aggregates:
        part = rows.where(aggregate=aggregate)
        measured, nothing = (cells(part.of("NMSE"), method, over) for method in (GRID, NOTHING))
        grid, ours = (cells(part.of("stated"), method, over) for method in (GRID, OTHER))
        gains += [ratio(ours[key], grid[key]) for key in grid if measured[key].mean < INFORMATIVE * nothing[key].mean]
    return gains


def gained(name, *aggregates, over=(), **where):
    return geometric_mean(grid_gains(committed(f"tables/{name}").where(**where), aggregates or ("COUNT", "SUM"), over))


COMPARED = (
    ("group-by", ("group",), {}),
    ("household-study", ("ages",), {"homes": "survey"}),
    ("joint-aggregation", (), {"value": "O"}),
    ("attribute-aggregation", (), {}),
    ("range-consistency", (), {}),
)
"""The figures behind the gains of a grid: their names, what errors are averaged over, and which rows."""


def honesty(method):
    """Measured NMSE over the stated one in every cell of these figures."""
    quotients = []
    for name, over, where in COMPARED:
        for aggregate in ("COUNT", "SUM"):
            part = committed(f"tables/{name}").where(aggregate=aggregate, **where)
            measured, stated = (cells(part.of(quantity), method, over) for quantity in ("NMSE", "stated"))
            quotients += [ratio(measured[key], stated[key]) for key in measured]
    return quotients


def mean(quotients):
    """The mean of ratios whose errors are taken to be independent."""
    count = len(quotients)
    return Ratio(
        math.fsum(each.mean for each in quotients) / count, math.hypot(*(each.stderr for each in quotients)) / count
    )


def grid_claims():
    whole = honesty(GRID)
    words = "{} cells of these figures measured NMSE is {} times what the grid states and {} times what ours states"
    yield words, len(whole), mean(whole), mean(honesty(OTHER))
    west = [share_of_people("west", method, 2.0) for method in (GRID, "ours")]
    nothing = share_of_people("west", NOTHING, 2.0, "NMSE")
    yield "in the west have an error of {} % of all people (ours {} %, saying 0 to everything {} %)", *west, nothing
    yield "at ε = 5 of {} % (ours {} %)", *(share_of_people("west", method, 5.0) for method in (GRID, "ours"))
    groups = (gained("group-by", aggregate, over=("group",)) for aggregate in ("COUNT", "SUM"))
    yield "GROUP BY at ε = 5 has {} (COUNT) and {} times (SUM) less NMSE than ours", *groups
    joins = (gained("joint-aggregation", aggregate, value="O") for aggregate in ("COUNT", "SUM"))
    yield "{} (COUNT) and {} times (SUM) less NMSE than ours for ranges over one-to-one joins", *joins
    yield "{} times less in tables of two to five attributes", gained("attribute-aggregation")
    yield "{} times less with one to four ranges in a table of four", gained("range-consistency")
    country = share_of_people("country", GRID, 2.0), share_of_people("country", NOTHING, 2.0, "NMSE")
    yield "(counts have an error of {} % of all people, saying 0 one of {} %)", *country


FINDINGS = (
    preamble,
    table_two_claims,
    attribute_claims,
    range_claims,
    join_claims,
    household_claims,
    grid_claims,
    spiky_claims,
)
KNOWN_TO = {grid_claims: 0.1}
"""How large the standard error of a ratio may be, as a share, where a headline rests on it."""
