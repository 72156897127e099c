"""WHERE → disjoint conjunctions. Every node is recognised, or the query is refused."""

from __future__ import annotations

import numpy as np
from sqlglot import exp

from deniable.arrays import Booleans
from deniable.limits import MOST_CONDITIONS
from deniable.queries.parsing.case_branches import branches_of, lifted
from deniable.queries.parsing.constants import CAST_TO, bound_of
from deniable.queries.parsing.domain_functions import COMPARISONS, FLIPPED, compare, evaluate, single_attribute
from deniable.queries.parsing.domain_functions import is_known as is_known_value
from deniable.queries.parsing.domain_values import constant_of, only_attribute, truth_of, value_alone
from deniable.queries.parsing.functions import DOMAIN_FUNCTIONS
from deniable.queries.parsing.literals import literal_of
from deniable.queries.parsing.scalar_functions import ANYWHERE, why_not
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.question.conditions import (
    EVERYTHING,
    MOST_CONJUNCTIONS,
    Conjunction,
    Disjoint,
    TooManyConjunctions,
    both,
    either,
    merged,
    opposite,
    private,
    public,
)
from deniable.queries.question.partners import has_row
from deniable.queries.question.public_trees import PublicTree, is_known
from deniable.queries.question.public_trees import column as public_column
from deniable.tables.schema.attributes import Categorical, Ordinal

_SIMPLE = {*COMPARISONS, exp.Between, exp.In, exp.Is}
_VALUE_NODES = {exp.Paren, exp.Column, exp.Identifier, exp.Literal, exp.Boolean}


def rows_asked(scope: Scope, select: Node) -> Disjoint:
    """The rows that a query is about: those of WHERE that have a row in every dimension, if it is not LEFT joined."""
    where = select.args.get("where")
    rows = EVERYTHING if where is None else condition_rows(scope, where.this)
    for name, conditions in scope.optional.items():
        if conditions:  # of several rows those that ON excludes are no rows of the join
            rows = both(rows, merged((*matched(scope, name), *unmatched(scope, name))))
    for dimension in scope.joined.values():
        if dimension.aligned is not None and isinstance(dimension.attribute, PrivateColumn):
            if dimension.aligned.present.all():
                continue
            here = private(dimension.attribute.attribute, dimension.aligned.present)
            rows = both(rows, _in_table(scope, dimension.attribute.attribute[0], here))
    for lookup in scope.lookups:
        if not lookup.outer:
            here = public((lookup.table, is_known(f"{lookup.alias}.{lookup.key}")))
            rows = both(rows, _in_table(scope, lookup.table, here))
    return rows


def matched(scope: Scope, table: str) -> Disjoint:
    """The rows with a partner in a table that LEFT JOIN names."""
    rows: Disjoint = public(has_row(table))
    for condition in scope.optional[table]:
        rows = both(rows, condition_rows(scope.inner(table), condition))
    return rows


def unmatched(scope: Scope, table: str) -> Disjoint:
    """The rows without a partner there."""
    if (scope.collection[table].many or 1) > 1:
        return (Conjunction({}, {has_row(table): False}),)
    return opposite(matched(scope, table))


def _in_table(scope: Scope, table: str, rows: Disjoint) -> Disjoint:
    """Rows that a condition on a table's columns is true of: only those with a partner there can be."""
    return both(matched(scope, table), rows) if table in scope.optional else rows


def condition_rows(scope: Scope, node: Node) -> Disjoint:
    """The rows for which a condition holds."""
    if sum(1 for _ in node.find_all(exp.And, exp.Or)) > MOST_CONDITIONS:
        raise scope.refusal(node, f"there are more than {MOST_CONDITIONS} conditions", "Use IN and BETWEEN.")
    try:
        rows = _read(scope, node, negated=False)
    except TooManyConjunctions:
        problem = f"the condition needs more than {MOST_CONJUNCTIONS} disjoint conjunctions"
        repair = "Use fewer ORs between different attributes, or ask several questions and add the answers."
        raise scope.refusal(node, problem, repair) from None
    if not rows:
        for part in node.find_all(exp.Is):
            _check_counted(scope, part)
    return rows


def _check_counted(scope: Scope, node: Node) -> None:
    """Refuse to say that nobody misses a value where rows without one are not reported."""
    inner = without_parentheses(node.this)
    negated = isinstance(node.parent, exp.Not)
    if negated or not isinstance(node.expression, exp.Null) or not isinstance(inner, exp.Column):
        return
    column = scope.meaning(inner)
    if isinstance(column, PrivateColumn) and column.dimension is None:
        problem = f"rows in which {column.attribute[1]!r} is missing are not reported, so nothing can be said of them"
        raise scope.refusal(
            node, problem, 'Give the attribute missing = "own" in the specification, and collect again.'
        )


def _read(scope: Scope, node: Node, *, negated: bool) -> Disjoint:
    if isinstance(node, exp.Paren):
        return _read(scope, node.this, negated=negated)
    if isinstance(node, exp.Not):
        return _read(scope, node.this, negated=not negated)
    if node.find(exp.Subquery, exp.Select, exp.Exists):
        key = scope.key
        repair = f"Ask two questions, or write {key} IN (SELECT {key} FROM t WHERE …)."  # noqa: S608 - not run
        raise scope.refusal(node, "subqueries are not supported", repair)
    if not node.find(exp.Column):
        return EVERYTHING if constant_of(scope, node) is (not negated) else ()
    keyed = any(scope.is_key(column) for column in node.find_all(exp.Column))
    if keyed and isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        return _is_alone(scope, without_parentheses(node.this), negated=negated)
    if not keyed and (table := scope.optional_table(node)) is not None:
        return _of_optional(scope, node, table, negated=negated)
    whole = None if keyed else _evaluated_by_engine(scope, node, negated)
    if whole is not None:
        return whole
    if isinstance(node, (exp.And, exp.Or)):
        left, right = _read(scope, node.left, negated=negated), _read(scope, node.right, negated=negated)
        return both(left, right) if isinstance(node, exp.And) != negated else either(left, right)
    if keyed and isinstance(node, (exp.Case, exp.If)):
        return _branches(scope, node, negated=negated)
    alone = only_attribute(scope, node)
    if alone is not None and _is_calculated(node, alone):
        return private(alone.attribute, truth_of(scope, node, alone.domain)[int(negated)])
    if isinstance(node, (exp.Case, exp.If)):
        return _branches(scope, node, negated=negated)
    branched = lifted(node) if alone is None else None
    if branched is not None:
        return _branches(scope, branched, negated=negated)
    if negated and _all_replaced(scope, node):
        return EVERYTHING  # as COUNT(x) counts them: by the rules of the specification, every row has a value
    column, mask = _condition(scope, node)
    # What is missing makes a comparison neither true nor false, as in SQL; IS is always one of them.
    unmet = ~mask if isinstance(node, exp.Is) else ~mask & is_known_value(column.domain)
    return private(column.attribute, unmet if negated else mask)


def _all_replaced(scope: Scope, node: Node) -> bool:
    """Whether a condition asks where an attribute is missing, and a value took the place of what is."""
    inner = without_parentheses(node.this) if isinstance(node, exp.Is) else None
    if not isinstance(inner, exp.Column) or not isinstance(node.expression, exp.Null):
        return False
    column = scope.meaning(inner)
    if not isinstance(column, PrivateColumn) or column.dimension is not None:
        return False
    return column.domain.missing is not None and column.domain.missing_position is None


def _is_alone(scope: Scope, key: Node, *, negated: bool) -> Disjoint:
    """Where a user id is missing: in rows without a partner in its table."""
    table = scope.key_table(key) if isinstance(key, exp.Column) else None
    if table is None:
        return EVERYTHING if negated else ()
    return matched(scope, table) if negated else unmatched(scope, table)


def _of_optional(scope: Scope, node: Node, table: str, *, negated: bool) -> Disjoint:
    """A condition on columns of a table that LEFT JOIN names: all of them are NULL in rows without a partner there."""
    inner, column = scope.inner(table), without_parentheses(node.this)
    replaced = isinstance(node, exp.Is) and isinstance(node.expression, exp.Null) and isinstance(column, exp.Column)
    meant = scope.meaning(column) if replaced else None
    if isinstance(meant, PrivateColumn) and meant.dimension is None and meant.domain.missing_position is None:
        rows: Disjoint = EVERYTHING if negated else ()  # by the rules of the specification, every row has a value
    else:
        rows = _read(inner, node, negated=negated)
    rows = both(matched(scope, table), rows)
    alone = value_alone(scope, exp.Not(this=exp.Paren(this=node.copy())) if negated else node)
    return merged((*rows, *unmatched(scope, table))) if alone is True else rows


def _branches(scope: Scope, node: Node, *, negated: bool) -> Disjoint:
    """A CASE of conditions: the first branch whose condition is true decides."""
    branches, default = branches_of(node)
    made: list[Conjunction] = []
    rest: Disjoint = EVERYTHING
    for condition, value in branches:
        holds = _read(scope, condition, negated=False)
        made += both(both(rest, holds), _read(scope, value, negated=negated))
        rest = both(rest, opposite(holds))
    if default is not None:
        made += both(rest, _read(scope, default, negated=negated))
    return merged(made)


def _is_calculated(node: Node, column: PrivateColumn) -> bool:
    """Whether a condition needs more than comparisons of numbers, which are exact in rationals."""
    if node.find(exp.Null):  # what is missing in an attribute itself is a matter of rules
        return not (isinstance(node, exp.Is) and isinstance(without_parentheses(node.this), exp.Column))
    if type(node) not in _SIMPLE:
        return not isinstance(node, exp.Column)
    sides = [without_parentheses(side) for side in _sides(node)]
    if isinstance(column.domain, Ordinal) and column.domain.kind == "number":
        return not all(is_exact(side) for side in sides)
    plain = [side for side in sides if side.find(exp.Column)]
    return any(not isinstance(side, exp.Column) for side in plain) or len(plain) > 1


def is_exact(node: Node) -> bool:
    """Whether an expression of numbers is computed in exact rationals, and not as DuckDB does."""
    return all(type(part) in DOMAIN_FUNCTIONS or type(part) in _VALUE_NODES for part in node.walk())


def _sides(node: Node) -> list[Node]:
    """What a condition compares."""
    if isinstance(node, exp.Between):
        return [node.this, node.args["low"], node.args["high"]]
    return [node.this, *(node.expressions if isinstance(node, exp.In) else [node.expression])]


def _evaluated_by_engine(scope: Scope, node: Node, negated: bool) -> Disjoint | None:
    """A condition on public columns of one table, or on columns of one dimension; None for any other."""
    columns = [scope.meaning(column) for column in node.find_all(exp.Column)]
    if not columns:
        return None
    tables = {column.table for column in columns if isinstance(column, PublicColumn)}
    if all(isinstance(column, PublicColumn) for column in columns):
        if len(tables) == 1:
            return public((tables.pop(), checked_tree(scope, node, negated)))
        if isinstance(node, (exp.And, exp.Or)):
            return None
        raise scope.refusal(node, "a condition compares public attributes of two tables", "Compare with constants.")
    of_dimensions = [column for column in columns if isinstance(column, PrivateColumn) and column.dimension]
    if len(of_dimensions) < len(columns) or len({id(column.dimension) for column in of_dimensions}) > 1:
        return None
    first = of_dimensions[0]
    assert first.dimension is not None  # noqa: S101 - chosen so
    return private(first.attribute, first.dimension.holds(checked_tree(scope, node, negated).tree))


def checked_tree(scope: Scope, node: Node, negated: bool = False) -> PublicTree:
    """A condition on public columns, after every node of it was recognised."""
    node = node.copy().transform(lambda part: _in_public(scope, part))
    for part in node.walk():
        if refused := why_not(part, ANYWHERE):
            raise scope.refusal(part, *refused)
        if (isinstance(part, exp.Cast) and part.to.this not in CAST_TO) or (
            isinstance(part, exp.In) and not part.expressions
        ):
            raise scope.refusal(part, "this condition is not supported", "Use comparisons with constants.")

    def by_engine_name(part: Node) -> Node:
        return public_column(scope.meaning(part).column) if isinstance(part, exp.Column) else part

    tree = node.transform(by_engine_name)
    return PublicTree.of(exp.Not(this=exp.Paren(this=tree)) if negated else tree)


_PARTS_OF_DATES = {"YEAR": exp.Year, "MONTH": exp.Month, "DAY": exp.Day, "QUARTER": exp.Quarter}


def _in_public(scope: Scope, node: Node) -> Node:
    """A part of a condition as all engines know it: constants that are computed, EXTRACT(YEAR FROM x) as YEAR(x)."""
    if isinstance(node, exp.Extract) and (known := _PARTS_OF_DATES.get(str(node.this.name).upper())):
        return known(this=node.expression)
    calculated = isinstance(node, (exp.Add, exp.Sub, exp.DateAdd, exp.DateSub, exp.DateTrunc, exp.TimestampTrunc))
    dated = calculated and node.find(exp.Interval, exp.DateTrunc, exp.TimestampTrunc, exp.Cast) is not None
    if dated and not node.find(exp.Column):
        return literal_of(constant_of(scope, node))
    return node


def _condition(scope: Scope, node: Node) -> tuple[PrivateColumn, Booleans]:
    """A condition on one private attribute."""
    if isinstance(node, exp.Between):
        low = _compared(scope, exp.GTE(this=node.this, expression=node.args["low"]))
        high = _compared(scope, exp.LTE(this=node.this, expression=node.args["high"]))
        _check_same(scope, node, low[0], high[0])
        return low[0], low[1] & high[1]
    if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
        column, mask = _compared(scope, exp.EQ(this=node.this, expression=node.expressions[0]))
        for constant in node.expressions[1:]:  # each mask may be as long as the domain: one after the other
            other, equal = _compared(scope, exp.EQ(this=node.this, expression=constant))
            _check_same(scope, node, column, other)
            mask = mask | equal
        return column, mask
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
        return _compared(scope, exp.EQ(this=node.this, expression=node.expression))
    if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null):
        column = _private_column(scope, node.this)
        if column.domain.missing_position is not None:
            return column, ~is_known_value(column.domain)
        if column.domain.missing is not None:
            problem = f"missing values of {column.attribute[1]!r} were replaced before they were reported"
            raise scope.refusal(node, problem, f"They count as {column.domain.missing}, as the specification says.")
        return column, np.zeros(column.domain.size, dtype=bool)  # such rows were dropped
    if isinstance(node, exp.Column):
        true = exp.true()
        true.meta.update(node.this.meta)  # where an error would be shown
        return _compared(scope, exp.EQ(this=node, expression=true))
    if type(node) in COMPARISONS:
        return _compared(scope, node)
    repair = "Use =, <>, <, <=, >, >=, BETWEEN, IN, IS TRUE, AND, OR and NOT."
    raise scope.refusal(node, "this condition is not supported", repair)


def _check_same(scope: Scope, node: Node, left: PrivateColumn, right: PrivateColumn) -> None:
    if left.attribute != right.attribute:
        raise scope.refusal(node, "a condition has two attributes", "Join two conditions by AND or OR.")


def _compared(scope: Scope, node: Node) -> tuple[PrivateColumn, Booleans]:
    kind, left, right = type(node), without_parentheses(node.left), without_parentheses(node.right)
    if not left.find(exp.Column):
        kind, left, right = FLIPPED[kind], right, left
    if isinstance(left, exp.Column) and not right.find(exp.Column):
        column = _private_column(scope, left)
        if isinstance(column.domain, Categorical) and kind not in (exp.EQ, exp.NEQ):
            raise scope.refusal(node, "categories have no order", "Use =, <> or IN.")
        return column, compare(column.domain, *bound_of(scope, kind, right, column.domain))
    if isinstance(left, exp.Column) and isinstance(right, exp.Column):
        problem = "two attributes of one person cannot be compared: each is randomised on its own tree"
        raise scope.refusal(node, problem, "Compare an attribute with a constant.")
    column = single_attribute(scope, node)
    assert isinstance(column.domain, Ordinal)  # noqa: S101 - single_attribute sees to it
    values, bounds = (evaluate(scope, side, column.domain) for side in (left, right))
    return column, values.compared(COMPARISONS[kind], bounds) & is_known_value(column.domain)


def without_parentheses(node: Node) -> Node:
    """What stands inside any number of parentheses."""
    return without_parentheses(node.this) if isinstance(node, exp.Paren) else node


def _private_column(scope: Scope, node: Node) -> PrivateColumn:
    column = scope.meaning(without_parentheses(node))
    if isinstance(column, PublicColumn):
        raise scope.refusal(
            node, f"public attribute {column.name!r} cannot be used here", "Give it a condition of its own."
        )
    if column.dimension is not None:
        raise scope.refusal(node, "a dimension's column cannot be used here", "Give it a condition of its own.")
    return column
