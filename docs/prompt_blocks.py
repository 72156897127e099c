"""What `mkdocs build` does to pages: Python with prompts is shown as a session, whose output is not code."""

import re

_WITH_PROMPT = re.compile(r"^```python\n(?=>>> )", flags=re.M)


def on_page_markdown(markdown: str, **_: object) -> str:
    """The page with its sessions marked as such.

    >>> on_page_markdown("```python\\n>>> 1\\n1\\n```")
    '```pycon\\n>>> 1\\n1\\n```'
    """
    return _WITH_PROMPT.sub("```pycon\n", markdown)
