"""What pages of the documentation claim about measurements: computed from committed results, or by formula."""

import csv
import math
import re

from committed_results import RESULTS
from page_claims import sections, table_rows
from table_claims import measured_over_stated

from deniable.cli.demo.shop import TOO_MUCH, specification
from deniable.queries.forecasts.forecast import users_needed
from deniable_lab.experiments import stream_reference
from deniable_lab.experiments.ratios import geometric_mean

DOCS = RESULTS.parent / "docs"


def streams():
    """A few figures of the page that has them all."""
    texts = sections(DOCS / "background" / "how-good-streams.md")
    cells, below, good, above = coverage_cells(texts["How often intervals cover the truth"])
    yield "of {} cells of a table by shape of stream", cells
    yield "of the window, {} cover more than", above
    yield "%, {} from", good
    yield "and {} less, mostly with", below
    papers = re.search(r"answers have ([\d.]+) times the mean squared error", texts["Next to the paper's settings"])
    yield "answers have {} times the mean squared error of the paper's settings", papers[1]
    met, asked = re.search(r"(\d+) of these (\d+) meet it", texts["On ten streams"]).groups()
    yield "in {} of {} cases of a stream, a bound and an ε", met, asked
    held = re.search(r"([\d.]+) to ([\d.]+) % hold the sum", texts["Without trust, next to the authors' code"])
    yield "hold the sum of the cut stream in {} to {} % of the windows", *held.groups()


def coverage_cells(text):
    """How many cells the table by shape has, and how many are too low, right and too high, as the page says."""
    return re.search(r"Of (\d+) cells (\d+) are below 93 %, (\d+) from 93 to 98 %, and (\d+) above", text).groups()


def evidence_of_streams():
    bounds = [f"{stream_reference.BOUNDS[file]:,}" for file in ("pos_length", "dns_google_rps")]
    yield "On POS (B = {}) and DNS (B = {})", *bounds


def grids():
    """A few figures of the page that has them all, and one finding of the results."""
    yield "measured errors are {} times what is stated", geometric_mean(measured_over_stated())
    texts = sections(DOCS / "background" / "how-good-grids.md")
    errors = {(row[0], row[1]): (row[4], row[7]) for row in table_rows(texts["Next to other systems"])[2:]}
    ranges, join = "2-D COUNT of 4, normal", "join COUNT, normal"
    yield "per user is {} at ε = 1, where the hierarchies of have {}.", *errors[ranges, "1"]
    yield "At ε = 2 it is {} instead of {}.", *errors[ranges, "2"]
    yield "in a join of two tables at ε = 2 has {} instead of {}.", *errors[join, "2"]
    within, outside, _, _, better, others, forecast = (row[-1] for row in table_rows(texts["Drawn tables"])[2:])
    number, of = re.compile(r"[\d,.]+"), re.compile(r"(\d+) % of (\d+)")
    yield "On {} drawn tables", of.search(better)[2]
    yield (
        "{} % of the {} % intervals hold the truth for questions of the workload, and {} % for others",
        (number.search(within)[0]),
        95,
        number.search(outside)[0],
    )
    yield "within a factor of 1.5 of the forecast for {} % of the workloads", number.search(forecast)[0]
    yield "that holds for {} % of the tables", of.search(others)[1]


def choose():
    likelier = [(f"{math.exp(epsilon):,.{0 if epsilon > 2 else 1}f}", epsilon) for epsilon in (1, 2, 4, 8)]
    yield (
        "than the other: {} at ε = {}, {} at {}, {} at {}, {} at {}",
        *(number for pair in likelier for number in pair),
    )


def queries():
    """The table of coverage, row by row."""
    with (RESULTS / "answers" / "coverage.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            covered, length = (f"{100 * float(row[column]):.1f}" for column in ("covered", "length"))
            named = row["answer"], row["data"], row["asked"], row["releases"], covered, length
            yield "| {} | {} | {} | {} | {} % | {} % |", *named


def readme():
    """What the question that needs too many people takes, as collected in the demonstration."""
    yield "takes about {} million", f"{users_needed(specification(), TOO_MUCH, 25) / 1e6:.2g}"


CLAIMS = {
    "../README.md": readme,
    "streams.md": streams,
    "background/how-good-streams.md": evidence_of_streams,
    "grids.md": grids,
    "queries.md": queries,
    "how-to/choose.md": choose,
}
