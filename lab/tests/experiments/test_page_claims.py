"""Pages cannot drift from results: each of their numbers is computed from a CSV, or quoted with its source."""

import pytest
import stream_claims
import table_claims
from committed_results import RESULTS
from page_claims import text_of, unsupported
from quoted_figures import RESULTS_PAGE

PAGE = RESULTS / "README.md"
in_repository = pytest.mark.skipif(not PAGE.is_file(), reason="the results are in the repository only")


@in_repository
def test_every_number_of_the_results_follows_from_its_csv_or_names_its_source():
    claims = [claim for finding in (*stream_claims.FINDINGS, *table_claims.FINDINGS) for claim in finding()]
    assert unsupported(text_of(PAGE), claims, RESULTS_PAGE) == []


@in_repository
def test_ratios_are_known_as_well_as_the_page_needs():
    assert stream_claims.known_badly() == []


def test_a_number_that_nobody_vouches_for_is_noticed():
    text = "On POS it has 2.5 ± 0.1 times the error at ε = 0.01, and Ĥc16 has 7 times over 2^20 values."
    claim = ("it has {} times the error", "2.5 ± 0.1")
    assert unsupported(text, [claim], {"Ĥc16 has 7 times": "[WCZ21]"}) == []
    (fault,) = unsupported(text, [claim], {})
    assert fault.startswith("neither computed nor quoted: 7 in ")
    assert unsupported(text, [(claim[0], "2.6 ± 0.1")], {"Ĥc16 has 7 times": "[WCZ21]"}) == [
        "the results say: it has 2.6 ± 0.1 times the error",
        *(f for f in unsupported(text, [], {"Ĥc16 has 7 times": "[WCZ21]"})),
    ]
    assert "quoted, and not on the page: 8 times" in unsupported(text, [claim], {"8 times": "nobody"})


def test_the_words_of_a_claim_vouch_for_nothing():
    """Only what stands in a slot was computed."""
    (fault,) = unsupported("5 of 9 cells", [("{} of 9 cells", 5)], {})
    assert fault.startswith("neither computed nor quoted: 9 in ")
