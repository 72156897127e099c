"""Write the numbers of the committed results into the pages that claim them: run this after `deniable reproduce`.

A sentence is recognised by the words of its claim. Where it no longer has them, or where its words are no longer true,
a person has to write it anew; `test_page_claims.py` says which sentences those are.
"""

import re
from pathlib import Path

import stream_claims
import table_claims
from committed_results import RESULTS
from docs_claims import CLAIMS, DOCS

SLOT = r"(\d(?:[\d.,e+-]*\d)?(?:\s+±\s+\d(?:[\d.,e+-]*\d)?)?)"
"""A number, with its standard error if it has one."""


def refreshed(text: str, claims) -> str:
    """The text with the numbers of these claims."""
    for phrase, *values in claims:
        literals = [re.sub(r"(?:\\ |\\\n|\s)+", r"\\s+", re.escape(literal)) for literal in str(phrase).split("{}")]
        matches = list(re.finditer(SLOT.join(literals), text))
        if len(matches) != 1:
            continue
        (match,) = matches
        for number in range(len(values), 0, -1):  # from the end, so that positions stay right
            start, stop = match.span(number)
            text = text[:start] + str(values[number - 1]) + text[stop:]
    return text


def refresh(page: Path, claims) -> None:
    page.write_text(refreshed(page.read_text(encoding="utf-8"), claims), encoding="utf-8")


if __name__ == "__main__":
    findings = (*stream_claims.FINDINGS, *table_claims.FINDINGS)
    refresh(RESULTS / "README.md", [claim for finding in findings for claim in finding()])
    for name, claims in CLAIMS.items():
        refresh(DOCS / name, claims())
