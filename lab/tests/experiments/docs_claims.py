"""What pages of the documentation claim about measurements: computed from committed results, or by formula."""

import csv
import math

from committed_results import RESULTS
from table_claims import measured_over_stated

from deniable.cli.demo.shop import TOO_MUCH, specification
from deniable.queries.forecasts.forecast import users_needed
from deniable_lab.experiments import stream_reference
from deniable_lab.experiments.ratios import geometric_mean

DOCS = RESULTS.parent / "docs"


def streams():
    bounds = [f"{stream_reference.BOUNDS[file]:,}" for file in ("pos_length", "dns_google_rps")]
    yield "On POS (B = {}) and DNS (B = {})", *bounds


def grids():
    yield "measured errors are {} times what is stated", geometric_mean(measured_over_stated())


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
    "grids.md": grids,
    "queries.md": queries,
    "how-to/choose.md": choose,
}
