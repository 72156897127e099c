"""Arithmetic of quantiles: P90 − P50, MEDIAN(x) / AVG(x), as expressions of answers whose intervals hold at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.queries.answers.answer_arithmetic import Interval, check_arithmetic, combined
from deniable.queries.answers.compound_answers import arranged
from deniable.queries.answers.result import Result
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import item_behind, ordering_of
from deniable.queries.parsing.quantile_questions import QUANTILE_NODES, is_quantile

Node = Any
ONE_PART = "part_of_an_answer_"
_PARTS_HOLD = "{}: the interval holds if those of all its parts do"
Ask = Callable[[str, int], Result]
"""A text → its answer, with intervals that hold together with those of so many others."""


@dataclass(frozen=True, slots=True)
class CombinedQuantiles:
    """A SELECT whose items calculate with quantiles."""

    asked: str
    """The same with the parts of such items in their place."""
    names: tuple[str, ...]
    items: dict[str, Node]
    """Such items by their names: expressions of columns that are parts."""
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    @property
    def most_parts(self) -> int:
        """How many answers an item is made of, at most."""
        return max(len({column.name for column in item.find_all(exp.Column)}) for item in self.items.values())

    def answer(self, ask: Ask, confidence: float, *, simultaneous: bool) -> Result:
        """The answer, row by row."""
        shown, parts = ask(self.asked, 1), ask(self.asked, self.most_parts)
        together = max(len(self.names) * len(shown), 1) if simultaneous else 1
        columns: dict[str, list[Any]] = {}
        for name in self.names:
            if name not in self.items:
                columns[name] = list(shown.groups[name] if name in shown.groups else shown.answers[name])
                continue
            known = sorted({str(column.name) for column in self.items[name].find_all(exp.Column)})
            columns[name] = [
                combined(
                    self.items[name],
                    {part: Interval.of(parts.answers[part][row]) for part in known},
                    confidence,
                    together,
                )
                for row in range(len(shown))
            ]
        notes = (*shown.notes, *(_PARTS_HOLD.format(name) for name in self.items))
        return arranged(columns, self.order, self.limit, self.offset, replace(shown, notes=notes))


def combined_quantiles(select: Node) -> CombinedQuantiles | None:
    """A SELECT with items that calculate with quantiles, taken apart; None for any other."""
    named = [(item.alias_or_name or name_of(item), _bare(item)) for item in select.expressions]
    items: dict[str, Node] = {}
    parts: dict[str, str] = {}
    kept: list[Node] = []
    for name, node in named:
        if not node.find(*QUANTILE_NODES) or is_quantile(node):
            kept.append(exp.alias_(node.copy(), name, quoted=True))
            continue
        items[name] = _with_parts(node.copy(), parts, kept)
        check_arithmetic(items[name])
    if not items:
        return None
    made = select.copy()
    made.set("expressions", kept)
    group = select.args.get("group")
    if group is not None and not group.args.get("all"):
        made.set("group", exp.Group(expressions=[item_behind(select, node).copy() for node in group.expressions]))
    for clause in ("order", "limit", "offset"):
        made.set(clause, None)
    names = tuple(name for name, _ in named)
    return CombinedQuantiles(str(made.sql(dialect="duckdb")), names, items, *ordering_of(select, names))


def _with_parts(node: Node, parts: dict[str, str], kept: list[Node]) -> Node:
    """An expression with columns in the place of its quantiles and other aggregates, which are added to `kept`."""
    if is_quantile(node) or isinstance(node, (exp.AggFunc, exp.Filter)):
        text = str(node.sql(dialect="duckdb"))
        if text not in parts:
            parts[text] = f"{ONE_PART}{len(parts)}"
            kept.append(exp.alias_(node.copy(), parts[text]))
        return exp.column(parts[text])
    for name, value in list(node.args.items()):
        if isinstance(value, exp.Expression):
            node.set(name, _with_parts(value, parts, kept))
        elif isinstance(value, list):
            node.set(
                name, [_with_parts(each, parts, kept) if isinstance(each, exp.Expression) else each for each in value]
            )
    return node


def _bare(item: Node) -> Node:
    return item.this if isinstance(item, exp.Alias) else item
