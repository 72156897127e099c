"""Every number of a page comes from somewhere: computed from the committed results, or quoted with its source.

A claim is a phrase of the page with a slot `{}` for each number, followed by the numbers as the page prints them. A
quote is a phrase whose numbers were not computed from a CSV, and where they are from: a setting, a paper, a command.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

NUMBER = re.compile(r"(?<![\w^])\d(?:[\d,.]*\d)?")
"""Digits that are not part of a name: neither the 16 of Ĥc16 nor the 20 of 2^20, whose base is a number."""
MARKUP = re.compile(r"^```.*?^```|^(?: *|#+ )\d+\. |\]\([^)]*\)|`[^`\n]*`|<[^>\n]*>", re.MULTILINE | re.DOTALL)
"""Code, the numbers of lists and headings, and targets of links, which claim nothing."""

SETTING = re.compile(
    r"\b(?:[A-Za-zετδ]|d_q) [=≤≥] [\d.,^]*\d(?: to [\d.,]*\d(?![\d.,]*\d| ±| %| times))?"
    r"|(?:2|10)\^\d+|Eqs?\. \(?\d+|SHA-256|(?:Figs?\.|Table|Section) \d+"
)
"""Named settings (ε = 0.1), powers as units and sizes, and parts of a paper: chosen or cited, not measured."""


def plain(text: str) -> str:
    """A page or a section in one line, without what claims nothing."""
    return " ".join(MARKUP.sub(" ", text).split())


def sections(page: Path) -> dict[str, str]:
    """The text of a page by heading; what stands above the first heading has none."""
    top, *parts = re.split(r"^##+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": top, **dict(zip(parts[::2], parts[1::2], strict=True))}


def table_rows(text: str) -> list[list[str]]:
    """The cells of all tables; an empty cell in the first columns means what stands above it."""
    rows: list[list[str]] = []
    for line in re.findall(r"^\|(.*)\|$", text, flags=re.MULTILINE):
        cells = [cell.strip() for cell in line.split("|")]
        filled = next(index for index, cell in enumerate(cells) if cell)
        rows.append([*(rows[-1][:filled] if rows else cells[:filled]), *cells[filled:]])
    return rows


def unsupported(text: str, claims: Iterable[tuple[object, ...]], quotes: Mapping[str, str]) -> list[str]:
    """Claims and quotes that the text does not have, and its numbers that are neither claimed nor quoted."""
    faults = []
    covered = set()
    for phrase, *values in claims:
        literals = str(phrase).split("{}")
        assert len(literals) == len(values) + 1, phrase
        rendered = str(phrase).format(*values)
        at = text.find(rendered)
        if text.count(rendered) != 1:
            faults.append(f"the results say: {rendered}" if at < 0 else f"more than once on the page: {rendered}")
            continue
        for literal, value in zip(literals, values, strict=False):
            at += len(literal)
            covered |= set(range(at, at := at + len(str(value))))
    covered |= {index for match in SETTING.finditer(text) for index in range(*match.span())}
    for phrase in quotes:
        spans = [match.span() for match in re.finditer(re.escape(phrase), text)]
        covered |= {index for start, stop in spans for index in range(start, stop)}
        if not spans:
            faults.append(f"quoted, and not on the page: {phrase}")
    for number in NUMBER.finditer(text):
        if not covered.issuperset(range(*number.span())):
            context = text[max(number.start() - 50, 0) : number.end() + 30]
            faults.append(f"neither computed nor quoted: {number[0]} in “{context}”")
    return faults
