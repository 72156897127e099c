"""Writes the page *Beyond the papers* from the committed results: a sentence, a picture, what was found, the command.

`make pages` runs it. A test compares the page and its pictures with the results.
"""

from __future__ import annotations

import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "results"
PAGE = DOCS / "background" / "beyond-the-papers.md"
MADE = "<!-- Made by docs/beyond.py: run `make pages` after a change. -->\n\n"
_INTRODUCTION = """\
# Beyond the papers

This page lists what the code claims beyond the two papers that it began with. Each claim has one picture, the figures
that were measured, and the command that makes both again. [The two papers in plain words](papers.md) has what they
claim themselves.
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """One claim: its title, what it is for, the experiment that shows it, and where more is said."""

    title: str
    sentence: str
    experiment: str
    more: str


CLAIMS = (
    Claim(
        "Rounds",
        "The table paper asks once. Here the same people are asked again and again under one promise over a lifetime.",
        "beyond/rounds",
        "[Ask again and again](../how-to/rounds.md)",
    ),
    Claim(
        "Influence of liars",
        "Every answer says how far one liar, and one person in a hundred, can move it. Assigned coins leave a liar "
        "nothing but his outcome.",
        "beyond/influence",
        "[Threat model](threat-model.md)",
    ),
    Claim(
        "Quantiles",
        "Medians and other quantiles are answered from all prefix counts at once, each with an interval.",
        "beyond/quantiles",
        "[Asking](../queries.md)",
    ),
    Claim(
        "Subset selection",
        "A third oracle: a report names a set of cells. It has less noise than randomized response and local hashing "
        "where a view has few cells or ε is small.",
        "beyond/subset-selection",
        "[Mechanisms](../reference/api/mechanisms.md)",
    ),
    Claim(
        "Joins through a private key",
        "People's transactions are joined with products that a shop reports under an ε of its own.",
        "tables/star-schema",
        "[Join people with private products](../how-to/private-products.md)",
    ),
    Claim(
        "Words that nobody listed",
        "Common words are found by a walk down a tree of prefixes, with a threshold of stated false positives.",
        "tables/heavy-hitters",
        "[Find words that nobody listed](../how-to/words.md)",
    ),
    Claim(
        "Comparisons of groups",
        "`Database.compare` looks at every two groups or rounds, and one error rate holds for all of them.",
        "beyond/comparisons",
        "[Asking](../queries.md)",
    ),
    Claim(
        "Shuffling",
        "Under pseudonyms, somebody who mixes messages hides whose each is. `deniable check --shuffled` says how far.",
        "beyond/shuffling",
        "[Report under pseudonyms](../how-to/pseudonyms.md)",
    ),
    Claim(
        "Renewed thresholds",
        "The stream paper learns θ once. Here every epoch learns it again for the next one.",
        "beyond/renewals",
        "[Streams](../streams.md)",
    ),
    Claim(
        "Tents",
        "Overlapping sums take the place of a tree, and have less noise for all windows but whole chunks.",
        "beyond/tents",
        "[Streams](../streams.md)",
    ),
    Claim(
        "People as the unit",
        "Streams protect one value in the paper, and here also everything that a person does within an epoch.",
        "beyond/people",
        "[What is promised](../privacy.md#people-as-the-unit)",
    ),
    Claim(
        "A collector under fault",
        "A report is acknowledged after it is on the disk, and counted once however often it comes.",
        "beyond/collector",
        "[Run a collector](../how-to/collector.md)",
    ),
)


def picture_name(claim: Claim) -> str:
    """The file of a claim's picture among the images of the docs."""
    return f"beyond-{claim.experiment.partition('/')[2]}.png"


def section(claim: Claim) -> str:
    """A claim with its figures, as the page of its experiment states them."""
    text = (RESULTS / f"{claim.experiment}.md").read_text(encoding="utf-8")
    command = re.search(r"made by `(deniable reproduce [^`]+)`", text)
    setting, found = re.search(r"\*\*Setting\.\*\* (.*?)\n\n", text, re.S), text.partition("**Findings.** ")[2].strip()
    assert command is not None and setting is not None  # noqa: S101, PT018 - every page of an experiment has both
    return f"""\
## {claim.title}

{claim.sentence} More: {claim.more}.

![{claim.title}](../images/{picture_name(claim)})

{found}

{setting[1]}

```sh
{command[1]}
```
"""


def page() -> str:
    """The whole page."""
    rows = [
        f"| [{claim.title}](#{claim.title.lower().replace(' ', '-')}) | `deniable reproduce {claim.experiment}` |"
        for claim in CLAIMS
    ]
    listed = "\n".join(["| claim | measured by |", "|---|---|", *rows]) + "\n"
    end = "Next: [the two papers in plain words](papers.md), [ideas behind the code](ideas.md), [scale](../scale.md).\n"
    return "\n".join([MADE + _INTRODUCTION, listed, *map(section, CLAIMS), end])


def main() -> None:
    """Write the page and copy its pictures."""
    for claim in CLAIMS:
        shutil.copyfile(RESULTS / f"{claim.experiment}.png", DOCS / "images" / picture_name(claim))
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
