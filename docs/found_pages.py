"""What `mkdocs build` says about a page to whoever searches: its own first sentences, and guides come before lists."""

import re
from typing import Any

_MARKS = re.compile(r"[`*]|\[([^\]]*)\]\([^)]*\)")
_LONGEST = 200
_LISTS = ("reference/api/", "architecture", "background/beyond", "background/ideas", "references")


def description(markdown: str) -> str:
    """The first sentences of a page, as plain text.

    >>> description("# Title\\n\\n![A picture](x.png)\\n\\nThis page shows `it`, [twice](y.md).\\nNot more.\\n\\nThen")
    'This page shows it, twice. Not more.'
    """
    paragraphs = re.sub(r"^```.*?^```$", "", markdown, flags=re.S | re.M).split("\n\n")
    plain = next((text for text in paragraphs if re.match(r"[\w`*\[]", text.strip())), "")
    sentences = re.split(r"(?<=[.?:]) ", re.sub(r"\s+", " ", _MARKS.sub(r"\1", plain)).strip())
    said = sentences[0]
    for sentence in sentences[1:]:
        if len(said) + 1 + len(sentence) > _LONGEST:
            break
        said += f" {sentence}"
    return said


def on_page_markdown(markdown: str, page: Any, **_: object) -> str:
    """The page as it is; pages outside a section, which have nothing beside them, show no navigation there."""
    page.meta.setdefault("description", description(markdown))
    if page.file.src_uri.startswith(_LISTS):
        page.meta.setdefault("search", {"boost": 0.3})
    if page.parent is None:
        page.meta.setdefault("hide", ["navigation"])
    return markdown
