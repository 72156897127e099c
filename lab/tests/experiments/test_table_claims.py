"""What the page of results claims about tables is what its CSVs say, number by number."""

import numpy as np
import pytest
from committed_results import RESULTS, committed

from deniable_lab.experiments.tables import household_study, range_consistency, table_two

PAGE = RESULTS / "README.md"


def claimed():
    return " ".join(PAGE.read_text(encoding="utf-8").split())


def spread(values):
    return f"{np.min(values):.2g} to {np.max(values):.2g}"


def table_two_claims():
    rows = committed("tables/table-two")
    both, alone = (table_two.printed_over_own(rows, summed) for summed in table_two.TABLES)
    ours = np.concatenate([table_two.stderrs(rows, "ours", question) for question in table_two.QUESTIONS])
    rdc, grid, ahio, baseline = (
        np.concatenate([table_two.stderrs(rows, method, question) for question in table_two.QUESTIONS])
        for method in ("AHIO-RDC", "grid", "AHIO", "SR-HIO")
    )
    best = [min(table_two.PRINTED[q, epsilon]) for q in table_two.QUESTIONS for epsilon in table_two.EPSILONS]
    yield f"printed over ours is {spread(both)}, median {np.median(both):.3g},"
    yield f"one group of users, the median is {np.median(alone):.3g}"
    yield f"{spread(rdc / ours)} times smaller than those of AHIO-RDC"
    yield f"{spread(best / ours)} times smaller than the best printed"
    yield f"is {spread(baseline / ahio)} times AHIO"
    yield f"standard errors are {spread(ours / grid)} times those that it states (median {np.median(ours / grid):.2g})"
    ours_ahead, grid_ahead = table_two.clearly_better(rows)
    assert not ours_ahead
    assert {cell.partition(" ")[0] for cell in grid_ahead} == {"Q3"}


def attribute_claims():
    rows = committed("tables/attribute-aggregation").where(panel="volume", value=0.15, aggregate="SUM")
    stated = {row["method"]: row.mean for row in rows.of("stated")}
    seen = {row["method"]: f"{row.mean:.1e} ± {row.stderr:.1e}" for row in rows.of("NMSE")}
    yield f"is {stated['AHIO'] / stated['ours']:.2g} times smaller than AHIO's"
    yield f"{stated['EHIO'] / stated['ours']:.0f} times smaller than EHIO's"
    yield f"{stated['HIO-PUB'] / stated['ours']:.2g} times smaller than HIO's when the summed attribute is not hidden"
    yield f"measured, ours is {seen['ours']} and HIO's {seen['HIO-PUB']}"


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
    yield f"gains {spread(gains[''])} times"
    yield f"up to {max(gains[' each']):.2g} times"
    for how, words in (("k = 16", "k = 16 has"), ("k = 16 each", "k = 16 of each attribute")):
        ratios = [gain("not sensitive", dq, "ours") / gain("not sensitive", dq, f"HIO-RDC, {how}") for dq in (3, 4)]
        yield f"{words} {ratios[0]:.2g} and {ratios[1]:.2g}"


def join_claims():
    rows = committed("tables/joint-aggregation").of("stated").where(epsilon=5.0, rows=100_000)

    def over(method, other, aggregate, value):
        part = rows.where(aggregate=aggregate, value=value)
        return part.only(method=method).mean / part.only(method=other).mean

    split = {value: over("SC-JOIN", "HIO-JOIN", "SUM", value) for value in ("C", "CO", "C+O")}
    ours = {
        (aggregate, value): over("HIO-JOIN-RDC", "ours", aggregate, value)
        for aggregate in ("COUNT", "SUM")
        for value in ("CO", "C+O", 1)
    }
    yield f"for a point ({split['C']:.2g} times)"
    yield f"{split['CO']:.2g} times worse for a point and a range on one table, {split['C+O']:.2g} times on two"
    for aggregate in ("SUM", "COUNT"):
        one_to_one, apart, many = (ours[aggregate, value] for value in ("CO", "C+O", 1))
        yield f"{one_to_one:.2g} times for {aggregate} one to one ({apart:.2g} with a condition on each table)"
        yield f"{many:.2g} times one to many"


def household_claims():
    every = committed("tables/household-study").of("stated").where(aggregate="COUNT")

    def share(method, sample, homes, epsilon=2.0):
        part = every.where(method=method, sample=sample, homes=homes, epsilon=epsilon)
        return np.sqrt(part.means.mean() * part.rows[0]["rows"] / household_study.ROWS[sample])

    def shares(method, homes):
        return " and ".join(f"{100 * share(method, sample, homes):.0f} %" for sample in ("country", "west"))

    yield f"standard errors of {shares('HIO-JOIN', 'survey')} of all people, and ours of {shares('ours', 'survey')}"
    yield f"become {shares('HIO-JOIN', 'as in 1940')} (HIO-JOIN), {shares('ours', 'as in 1940')} (ours)"
    ratios = [
        share(method, sample, "survey", epsilon) / share(method, sample, "as in 1940", epsilon)
        for method in household_study.METHODS[:-1]
        for sample in ("country", "west")
        for epsilon in household_study.EPSILONS
    ]
    yield f"{min(ratios):.1f} to {max(ratios):.1f} times smaller"


@pytest.mark.skipif(not PAGE.is_file(), reason="the results are in the repository only")
@pytest.mark.parametrize(
    "claims",
    [table_two_claims, attribute_claims, range_claims, join_claims, household_claims],
    ids=lambda c: c.__name__,
)
def test_claims_about_tables_follow_from_their_csv(claims):
    page = claimed()
    assert [claim for claim in claims() if claim not in page] == []
