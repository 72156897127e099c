"""GROUP BY → groups, and what select items are called elsewhere in a query: by position, by alias, by themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
from sqlglot import exp

from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.constants import WHOLE_NUMBER
from deniable.queries.parsing.domain_functions import evaluate, single_attribute
from deniable.queries.parsing.domain_values import distinct_of, evaluated, only_attribute, value_alone, values_of
from deniable.queries.parsing.draft import SelectItem
from deniable.queries.parsing.scope import ColumnMeaning, Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.parsing.where import is_exact, without_parentheses
from deniable.queries.question.listed_words import ListedWords
from deniable.queries.question.question import MOST_GROUPS, PrivateGroups, PublicGroups
from deniable.tables.schema.attributes import Ordinal

Groups = PrivateGroups | PublicGroups


def groups_of(scope: Scope, node: Node, items: Sequence[SelectItem]) -> dict[str, Groups]:
    """The groups of a query, by the normal form of the expression that is grouped by."""
    if node is None:
        return {}
    plain = [
        (item.alias, without_parentheses(item.node))
        for item in items
        if item.node.find(exp.Column) and not item.node.find(exp.AggFunc)
    ]
    wanted = [(written, item_meant(scope, written, items, grouping=True)) for written in node.expressions]
    if node.args.get("all"):
        wanted = [(inner, inner) for _, inner in plain]
    if any(value for clause, value in node.args.items() if clause not in ("expressions", "all")):
        raise scope.refusal(node, "only plain GROUP BY is supported", "List attributes.")
    groups: dict[str, Groups] = {}
    for written, inner in wanted:
        if isinstance(inner, (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)):
            raise scope.refusal(written, "only plain GROUP BY is supported", "List attributes.")
        normal = normal_form(scope, inner)
        label = next((alias for alias, item in plain if alias and normal_form(scope, item) == normal), "")
        group = _group(scope, inner, label or name_of(inner))
        if any(other.label == group.label for other in groups.values()):
            raise scope.refusal(written, "two groups have the same name", "Name them with AS.")
        groups[normal] = group
    return groups


def item_meant(scope: Scope, node: Node, items: Sequence[SelectItem], *, grouping: bool = False) -> Node:
    """A select item that is named by its position or its alias; else the expression itself."""
    node = without_parentheses(node)
    if isinstance(node, exp.Literal) and not node.is_string:
        if not WHOLE_NUMBER.fullmatch(node.this) or not 1 <= int(node.this) <= len(items):
            raise scope.refusal(node, "there is no such select item", f"Use 1 to {len(items)}.")
        return without_parentheses(items[int(node.this) - 1].node)
    named = by_alias(items)
    if not isinstance(node, exp.Column) or node.table or node.name.casefold() not in named:
        return node
    meant = without_parentheses(named[node.name.casefold()])
    if (
        grouping
        and scope.has(node)
        and (meant.find(exp.AggFunc) or normal_form(scope, meant) != normal_form(scope, node))
    ):
        problem = f"{node.name!r} is the name of an answer and of another attribute"
        raise scope.refusal(node, problem, "Give the answer another name, or write table.attribute.")
    return meant


def by_alias(items: Sequence[SelectItem]) -> dict[str, Node]:
    """Select items that have an alias; case does not count."""
    return {item.alias.casefold(): item.node for item in items if item.alias}


def normal_form(scope: Scope, node: Node) -> str:
    """An expression's text with every column fully named: the same for the same thing."""

    def fully_named(part: Node) -> Node:
        if not isinstance(part, exp.Column):
            return part
        column = scope.meaning(part)
        if isinstance(column, PublicColumn):
            return exp.column(column.column, table=column.table)
        joined = f"{id(column.dimension)}" if column.dimension else ""  # a dimension may be joined twice
        return exp.column(column.column or column.attribute[1], table=".".join((*column.attribute, joined)))

    return str(node.transform(fully_named).sql(dialect="duckdb", normalize_functions="lower"))


def _group(scope: Scope, node: Node, label: str) -> Groups:
    table = scope.optional_table(node)
    if table is None:
        return _group_of_rows(scope, node, label)
    if (scope.collection[table].many or 1) > 1:
        problem = f"rows without one in {table!r} are a group of their own, and reports hide how many these are"
        raise scope.refusal(node, problem, "Leave them out: write JOIN, or WHERE … IS NOT NULL.")
    if scope.optional[table]:
        repair = "Put the condition into WHERE, or group by something else."
        raise scope.refusal(node, "a column of a table with a further condition in ON is grouped by", repair)
    group = _group_of_rows(scope.inner(table), node, label)
    if isinstance(group, PublicGroups):
        return group
    alone = value_alone(scope, node)
    if alone in group.values:
        return replace(group, alone=group.values.index(alone))
    known = [value for value in group.values if value is not None]
    position = len(group.values) if alone is None else sum(value < alone for value in known)
    values = (*group.values[:position], alone, *group.values[position:])
    return replace(
        group, values=values, codes=np.where(group.codes >= position, group.codes + 1, group.codes), alone=position
    )


def _group_of_rows(scope: Scope, node: Node, label: str) -> Groups:
    if not isinstance(node, exp.Column):
        return _bins(scope, node, label)
    column = scope.meaning(node)
    if isinstance(column, PublicColumn):
        return PublicGroups(label, column.table, column.column)
    if column.dimension is not None:
        values, codes = column.dimension.groups(column.column)
        return PrivateGroups(label, column.attribute, values, codes)
    domain = column.domain
    if isinstance(domain, ListedWords):
        return PrivateGroups(label, column.attribute, domain.shown or (None,), domain.groups)
    _check_count(scope, node, domain.size)
    everything = tuple(domain.decode(code) for code in range(domain.size))
    return PrivateGroups(label, column.attribute, everything, np.arange(domain.size))


def _bins(scope: Scope, node: Node, label: str) -> PrivateGroups:
    """The distinct values of an expression of one attribute, in order."""
    meanings = [scope.meaning(column) for column in node.find_all(exp.Column)]
    first = meanings[0] if meanings else None
    if isinstance(first, PrivateColumn) and is_of_one_dimension(meanings) and first.dimension is not None:
        names = {part.sql(dialect="duckdb"): scope.meaning(part).column for part in node.find_all(exp.Column)}
        here = first.dimension.present
        distinct_here, which = distinct_of(evaluated(scope, node, first.dimension.frame, names).filter(pa.array(here)))
        places = np.full(here.size, -1, dtype=np.int64)
        places[here] = which
        return PrivateGroups(label, first.attribute, distinct_here, places)
    column = only_attribute(scope, node)
    if column is None or (is_exact(node) and isinstance(column.domain, Ordinal)):
        column = single_attribute(scope, node)
        assert isinstance(column.domain, Ordinal)  # noqa: S101 - single_attribute sees to it
        distinct, which = evaluate(scope, node, column.domain).distinct()
        known = column.domain.known_size
        used, kept = np.unique(np.broadcast_to(which, column.domain.size)[:known], return_inverse=True)
        distinct, which = tuple(distinct[number] for number in used), kept
        _check_count(scope, node, len(distinct))
        values = [Fraction(*pair) for pair in distinct]
        order = sorted(range(len(values)), key=values.__getitem__)
        shown = (int(value) if value.denominator == 1 else float(value) for value in sorted(values))
        codes = np.argsort(order)[which]
        if column.domain.missing_position is None:
            return PrivateGroups(label, column.attribute, tuple(shown), codes)
        return PrivateGroups(label, column.attribute, (*shown, None), np.append(codes, len(values)))
    groups, codes = distinct_of(values_of(scope, node, column.domain))
    _check_count(scope, node, len(groups))
    return PrivateGroups(label, column.attribute, groups, codes)


def is_of_one_dimension(meanings: Sequence[ColumnMeaning]) -> bool:
    """Whether columns are those of one dimension that is joined on a private attribute."""
    known = {id(each.dimension) if isinstance(each, PrivateColumn) and each.dimension else None for each in meanings}
    return len(known) == 1 and None not in known


def _check_count(scope: Scope, node: Node, groups: int) -> None:
    if groups > MOST_GROUPS:
        repair = "Group by fewer attributes, or bins: FLOOR(x / 10)."
        raise scope.refusal(node, f"there are {groups:,} groups, over {MOST_GROUPS:,}", repair)
