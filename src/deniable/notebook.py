"""HTML tables for notebooks. All content is escaped; nothing is fetched or run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", notes: Iterable[str] = ()
) -> str:
    """A table with a title above it and notes below.

    >>> html_table(["a"], [["<1"]], title="few")
    '<p><b>few</b></p><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table>'
    """
    above = f"<p><b>{escape(title)}</b></p>" if title else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    below = "".join(f"<p>{escape(note)}</p>" for note in notes)
    return f"{above}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_text(text: str) -> str:
    """Text as it prints.

    >>> html_text("1 < 2")
    '<pre>1 &lt; 2</pre>'
    """
    return f"<pre>{escape(text)}</pre>"
