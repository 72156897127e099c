"""Pages cannot drift from results: each of their numbers is computed from a CSV, or quoted with its source."""

import pytest
import stream_claims
import table_claims
from committed_results import RESULTS
from docs_claims import CLAIMS, DOCS
from page_claims import plain, sections, table_rows, unsupported
from quoted_figures import DOCS_PAGES, RESULTS_PAGE, SECTIONS
from refresh_claims import refreshed

from deniable_lab.benchmarks.grid_accuracy import WANTED
from deniable_lab.experiments import stream_reference
from deniable_lab.experiments.ratios import Ratio

PAGE = RESULTS / "README.md"
in_repository = pytest.mark.skipif(not PAGE.is_file(), reason="the results are in the repository only")


@in_repository
def test_every_number_of_the_results_follows_from_its_csv_or_names_its_source():
    findings = (*stream_claims.FINDINGS, *table_claims.FINDINGS)
    claims = [claim for finding in findings for claim in finding()]
    assert unsupported(plain(PAGE.read_text(encoding="utf-8")), claims, RESULTS_PAGE) == []


@in_repository
def test_ratios_are_known_as_well_as_the_page_needs():
    known_badly = [
        f"{phrase}: {value}"
        for finding, share in {**stream_claims.KNOWN_TO, **table_claims.KNOWN_TO}.items()
        for phrase, *values in finding()
        for value in values
        if isinstance(value, Ratio) and value.stderr > share * value.mean
    ]
    assert known_badly == []


def test_a_number_that_nobody_vouches_for_is_noticed():
    text = "On POS it has 2.5 ± 0.1 times the error at ε = 0.01, and Ĥc16 has 7 times over 2^20 values."
    claim, wrong = (("it has {} times the error", number) for number in ("2.5 ± 0.1", "2.6 ± 0.1"))
    quotes = {"Ĥc16 has 7 times": "[WCZ21]"}
    assert unsupported(text, [claim], quotes) == []
    (fault,) = unsupported(text, [claim], {})
    assert fault.startswith("neither computed nor quoted: 7 in ")
    first, *others = unsupported(text, [wrong], quotes)
    assert first == "the results say: it has 2.6 ± 0.1 times the error"
    assert [other.split(" in ")[0] for other in others] == [
        "neither computed nor quoted: 2.5",
        "neither computed nor quoted: 0.1",
    ]
    assert "quoted, and not on the page: 8 times" in unsupported(text, [claim], {"8 times": "nobody"})


def test_new_results_can_be_written_into_a_page():
    text = "On POS it has 2.5 ± 0.1\n  times the error, and 3,000. On DNS 7 times."
    claims = [("it has {} times the error, and {}.", "1.2e+11 ± 0.3e+11", "4"), ("DNS {} times", 8), ("PAK {}", 9)]
    written = refreshed(text, claims)
    assert written == "On POS it has 1.2e+11 ± 0.3e+11\n  times the error, and 4. On DNS 8 times."
    assert unsupported(" ".join(written.split()), claims[:2], {}) == []


def test_a_claim_that_could_mean_two_sentences_is_refused():
    faults = unsupported("POS has 5 times, DNS has 5 times", [("has {} times", 5)], {})
    assert faults[0] == "more than once on the page: has 5 times"


def test_settings_need_no_source_and_what_follows_them_does():
    assert unsupported("ε = 0.01 to 0.1 by Eq. (6) over 2^20 values, Fig. 3", [], {}) == []
    for text in ("at ε = 0.01 to 7.4 times", "at ε = 0.5 and 7.4", "at ε = 2 to 7.4 % of all"):
        (fault,) = unsupported(text, [], {})
        assert fault.startswith("neither computed nor quoted: 7.4 in ")


def test_the_words_of_a_claim_vouch_for_nothing():
    """Only what stands in a slot was computed."""
    (fault,) = unsupported("5 of 9 cells", [("{} of 9 cells", 5)], {})
    assert fault.startswith("neither computed nor quoted: 9 in ")


@in_repository
@pytest.mark.parametrize("page", DOCS_PAGES)
def test_every_number_of_a_page_is_computed_or_names_its_source(page):
    texts, commands = sections(DOCS / page), SECTIONS.get(page, {})
    quotes = DOCS_PAGES[page] | {plain(texts[heading]): "a command" for heading in commands}
    claims = CLAIMS[page]() if page in CLAIMS else ()
    assert unsupported(plain((DOCS / page).read_text(encoding="utf-8")), claims, quotes) == []


@in_repository
def test_pages_name_the_commands_that_print_their_figures():
    sources = [(PAGE.read_text(encoding="utf-8"), command) for command in RESULTS_PAGE.values()]
    for page in DOCS_PAGES:
        sources += [((DOCS / page).read_text(encoding="utf-8"), command) for command in DOCS_PAGES[page].values()]
        texts = sections(DOCS / page)
        sources += [(texts[heading], each) for heading, several in SECTIONS.get(page, {}).items() for each in several]
    commands = [(" ".join(text.split()), command) for text, command in sources if command.startswith("deniable ")]
    assert len(commands) > 20
    assert [command for text, command in commands if command not in text] == []


@in_repository
def test_figures_of_others_stand_on_the_pages_as_in_the_code():
    known = {name.partition("_")[0].upper(): name for name in stream_reference.LOCAL}
    rows = table_rows(
        sections(DOCS / "background" / "how-good-streams.md")["Without trust, next to the authors' code"]
    )[2:]
    printed = {row[0]: (row[3], row[5]) for row in rows}
    assert printed == {
        f"{data}, {epsilon:g}": (
            f"{figure.mean:.3g}" + (f" ± {100 * figure.stderr / figure.mean:.0f} %" if figure.stderr else ""),
            f"{stream_reference.LOCAL_MMSE[file][epsilon]:.3g}",
        )
        for data, file in known.items()
        for epsilon, figure in stream_reference.LOCAL[file].items()
    }
    rows = table_rows(sections(DOCS / "background" / "how-good-grids.md")["Next to other systems"])
    peers = {(row[0].removesuffix(", normal"), float(row[1])): float(row[8]) for row in rows[2:] if row[8]}
    assert peers == {cell: figure for cell, figure in WANTED.items() if cell[0].startswith("2-D")}
