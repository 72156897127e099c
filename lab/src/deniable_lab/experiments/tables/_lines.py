"""The lines of every figure about tables: a name, how reports are collected, and how they are asked.

One more design is one more entry of `LINES`; named in `OURS`, too, it is in every figure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from deniable.collection import Collection, fit
from deniable.queries.weights.table_plan import DESIGNED, DIRECT
from deniable.tables.schema.attributes import Table

Collect = Callable[[Sequence[Table], float, int, Sequence[str]], Collection]
"""From tables, ε, the number of users and the questions that will be asked."""


def designed(design: str, oracle: str) -> Collect:
    """The collection of some tables under an ε, in one of the designs by name."""
    return lambda tables, epsilon, _users, _questions: Collection(
        *tables, epsilon=epsilon, design=design, oracle=oracle
    )


def fitted(tables: Sequence[Table], epsilon: float, users: int, questions: Sequence[str]) -> Collection:
    """A grid fitted to the questions, before anything is collected; it is meant to answer these and no others."""
    return fit(tables, epsilon=epsilon, users=users, workload=questions, compared=False).collection


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a figure."""

    name: str
    collect: Collect
    weights: str
    sums: str
    paper: bool = True
    """The paper's way: reports of a view are scaled by how many were to be expected, and AVG is SUM over COUNT. Ours
    scales by how many there are, and measures averages from the middle of the domain."""
    public: bool = False
    """The aggregated attribute is sent in clear, too."""
    split: bool = False
    """Every attribute is a table of its own, and the aggregated one is rounded to its ends beforehand."""
    colour: str = "black"
    marker: str = "o"

    def with_weights(self, name: str, weights: str) -> Line:
        """The same reports, asked otherwise."""
        return replace(self, name=name, weights=weights)

    def coloured(self, colour: str, marker: str) -> Line:
        """The same line, drawn otherwise."""
        return replace(self, colour=colour, marker=marker)


_HIO, _AHIO, _AUTO = designed("hio", "olh"), designed("ahio", "olh"), designed("hio", "auto")
_ALL = (
    Line("HIO", _HIO, "greedy", DIRECT, colour="tab:gray", marker="s"),
    Line("AHIO", _AHIO, "greedy", DESIGNED, colour="tab:orange", marker="^"),
    Line("EHIO", designed("ehio", "olh"), "greedy", DESIGNED, colour="tab:green", marker="v"),
    Line("SR-HIO", designed("sr-hio", "olh"), "greedy", DESIGNED, colour="tab:pink", marker="p"),
    Line("AHIO-RDC", _AHIO, "rdc(8)", DESIGNED, colour="tab:red", marker="D"),
    Line("AMG", designed("amg", "olh"), "greedy", DESIGNED, colour="tab:brown", marker="x"),
    Line("HIO-PUB", _HIO, "greedy", DIRECT, public=True, colour="tab:purple", marker="P"),
    # [XDW20, Section 4.1] in the framework of Section 3.3: every attribute, and every rounded one, in a report alone.
    Line("SC-JOIN", _HIO, "greedy", DIRECT, split=True, colour="tab:brown", marker="x"),
    Line("HIO-JOIN", _AHIO, "greedy", DESIGNED, colour="tab:orange", marker="^"),
    Line("HIO-JOIN-RDC", _AHIO, "rdc(8)", DESIGNED, colour="tab:red", marker="D"),
    Line("optimal", _HIO, "optimal", DIRECT, paper=False, colour="tab:cyan", marker="*"),
    Line("ours", _AUTO, "optimal", DIRECT, paper=False, colour="tab:blue", marker="o"),
    Line("grid", fitted, "optimal", DIRECT, paper=False, colour="black", marker="d"),
)
OURS = ("ours", "grid")
LINES = {line.name: line for line in _ALL}
"""`optimal` is HIO's reports with the best weights and direct sums; `ours`, the default, has adaptive oracles too.
`grid` is fitted to the questions and assumes smooth data: it is biased, and what it states is variance and bias."""
