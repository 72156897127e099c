"""The report as one HTML file: pictures are embedded, nothing is loaded from the network, and it fits a phone."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from deniable.notebook import html_table, html_text

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .6rem; background: #8882; font-size: .85rem; }
pre, img { border-radius: .4rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .9rem; }
th, td { padding: .25rem .5rem; border-bottom: 1px solid #8884; text-align: right; vertical-align: bottom; }
td:not(:first-child) { white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
img { display: block; width: 100%; max-width: 40rem; height: auto; margin: 1rem auto; background: #fff; }
@media (max-width: 30rem) {
  table { font-size: .8rem; } th, td { padding: .25rem .2rem; }
  td:first-child { min-width: 4.5rem; } td:not(:first-child) { white-space: normal; }
}
@media (prefers-color-scheme: dark) { img { filter: invert(.93) hue-rotate(180deg); } }
footer { margin-top: 2rem; font-size: .85rem; opacity: .8; }
"""


def heading(text: str) -> str:
    """The heading of a section."""
    return f"<h2>{escape(text)}</h2>"


def words(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    """Text as it is typed."""
    return html_text(text)


def rows(header: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """A table; the first column is words, the others numbers."""
    return f'<div class="wide">{html_table(header, body)}</div>'


def picture(path: Path, seen: str) -> str:
    """A PNG embedded in the page, with a description."""
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<img src="data:image/png;base64,{data}" alt="{escape(seen, quote=True)}">'


def page(title: str, parts: Iterable[str]) -> str:
    """The whole file."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>"
        f"<h1>{escape(title)}</h1>\n" + "\n".join(parts) + "\n</body></html>\n"
    )
