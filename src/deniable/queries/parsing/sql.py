"""SQL text → checked question. A query is let through because each node of it was recognised.

Everything else is refused by name, with its position in the text and what to write instead. `PASSES` lists the steps,
each a function from one frozen `Draft` to the next. A new SQL function is one entry in `functions.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.limits import MOST_ANSWERS, MOST_CONDITIONS
from deniable.queries.parsing.aggregates import SumCollector
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.constants import WHOLE_NUMBER
from deniable.queries.parsing.derived_tables import flattened
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.domain_functions import COMPARISONS
from deniable.queries.parsing.draft import Draft, SelectItem
from deniable.queries.parsing.functions import refused_aggregate
from deniable.queries.parsing.grammar import check_parts, read_select
from deniable.queries.parsing.groups import by_alias, groups_of, item_meant, normal_form
from deniable.queries.parsing.outside_constants import outside_notes
from deniable.queries.parsing.scalar_functions import ON_DOMAINS
from deniable.queries.parsing.scope import Node, Scope
from deniable.queries.parsing.source_names import conjuncts
from deniable.queries.parsing.where import condition_rows, rows_asked, without_parentheses
from deniable.queries.question.conditions import Conjunction, both
from deniable.queries.question.formula import Number
from deniable.queries.question.partners import settled, with_partner
from deniable.queries.question.public_trees import PublicFactor, PublicTest
from deniable.queries.question.question import (
    ERROR_COLUMNS,
    AnswerColumn,
    Having,
    HavingComparison,
    HavingLogic,
    Ordering,
    PrivateGroups,
    PublicGroups,
    Question,
    Term,
)
from deniable.tables.specification.specification import Specification

_LISTS = ("GROUP", "ORDER")
_COMPARISON_SIGNS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def parse(
    text: str,
    collection: Specification,
    dimensions: Mapping[str, Dimension] | None = None,
    *,
    key: str = "uid",
    centred: bool = True,
) -> Question:
    """The question that an SQL text asks of a collection.

    `centred` measures averages from the middle of their range, which is better wherever values are not rounded.
    """
    draft = Draft(text, collection, dimensions or {}, key, centred)
    try:
        for step in PASSES:
            draft = step(draft)
    except RecursionError:
        raise QueryRefused("the text is nested too deeply", "Ask a simpler question.") from None
    return draft.question()


def read_tree(draft: Draft) -> Draft:
    """The text as a tree."""
    return replace(draft, select=read_select(draft.text))


def flatten_sources(draft: Draft) -> Draft:
    """One SELECT of tables, without WITH and derived tables, and without any part that would be ignored."""
    select = flattened(draft.text, draft.select, draft.collection, draft.key, draft.dimensions)
    check_parts(draft.text, select)
    return replace(draft, select=select)


def name_sources(draft: Draft) -> Draft:
    """FROM and JOIN: what names mean from here on."""
    scope = Scope(draft.text, draft.collection, draft.dimensions, draft.key)
    return replace(draft, names=scope.with_sources(draft.select))


def select_rows(draft: Draft) -> Draft:
    """WHERE and the joined dimensions as disjoint conjunctions.

    A table that LEFT JOIN names is joined by JOIN where WHERE leaves out all rows without a partner there.
    """
    scope, rows = draft.scope, rows_asked(draft.scope, draft.select)
    known = settled(rows, scope.optional)
    needed = [name for name in scope.optional if known and all(with_partner(each, name) for each in known)]
    if not needed:
        return replace(draft, rows=rows)
    inner = scope.inner(*needed)
    rows = rows_asked(inner, draft.select)
    for condition in (condition for name in needed for condition in scope.optional[name]):
        rows = both(rows, condition_rows(inner, condition))
    return replace(draft, names=inner, rows=rows)


def list_items(draft: Draft) -> Draft:
    """The SELECT list; lists that would take long to work through are refused."""
    select, scope = draft.select, draft.scope
    for clause, node in (("SELECT", select), *((name, select.args.get(name.lower())) for name in _LISTS)):
        if node is not None and len(node.expressions) > MOST_ANSWERS:
            problem = f"{clause} lists more than {MOST_ANSWERS} things"
            raise scope.refusal(node.expressions[MOST_ANSWERS], problem, "Ask several questions.")
    having = select.args.get("having")
    if having is not None and sum(1 for _ in having.find_all(exp.And, exp.Or)) > MOST_CONDITIONS:
        problem = f"HAVING has more than {MOST_CONDITIONS} conditions"
        raise scope.refusal(having, problem, "Filter the answer's rows yourself.")
    items = (
        SelectItem(node.alias, node.this) if isinstance(node, exp.Alias) else SelectItem("", node)
        for node in select.expressions
    )
    return replace(draft, items=tuple(items))


def group_rows(draft: Draft) -> Draft:
    """GROUP BY."""
    return replace(draft, groups=groups_of(draft.scope, draft.select.args.get("group"), draft.items))


def choose_groups(draft: Draft) -> Draft:
    """Conditions of HAVING on groups alone: they choose rows, as in WHERE."""
    having, rows, left = draft.select.args.get("having"), draft.rows, []
    for part in [] if having is None else conjuncts(having.this):
        meant = _with_items(draft, part)
        if meant.find(exp.AggFunc, exp.Subquery) or not meant.find(exp.Column) or not _is_of_groups(draft, meant):
            left.append(part)
        else:
            rows = both(rows, condition_rows(draft.scope, meant))
    if having is None or len(left) == len(conjuncts(having.this)):
        return draft
    select = draft.select.copy()
    select.set("having", exp.Having(this=exp.and_(*(part.copy() for part in left))) if left else None)
    return replace(draft, select=select, rows=rows)


def _is_of_groups(draft: Draft, node: Node) -> bool:
    """Whether an expression is a function of what is grouped by."""
    inner = without_parentheses(node)
    if inner.find(exp.Column) and normal_form(draft.scope, inner) in draft.groups:
        return True
    children = [child for child in inner.iter_expressions() if child.find(exp.Column)]
    return not isinstance(inner, exp.Column) and all(_is_of_groups(draft, child) for child in children)


def sum_items(draft: Draft) -> Draft:
    """Select items as formulas of sums, or as labels of groups."""
    scope, collector = draft.scope, _collector(draft)
    shown, outputs = [], []
    for item in draft.items:
        node = item.node
        if without_parentheses(node).find(exp.Star) and not node.find(exp.AggFunc):
            raise scope.refusal(node, *ROWS_ARE_HIDDEN)
        if not node.find(exp.AggFunc) and node.find(exp.Column):
            group = draft.groups.get(normal_form(scope, without_parentheses(node)))
            if group is None:
                unknown = next((part for part in node.walk() if isinstance(part, exp.Anonymous)), None)
                if unknown is not None or (isinstance(node, exp.Func) and type(node) not in ON_DOMAINS):
                    raise scope.refusal(node, *refused_aggregate(unknown or node))
                if not draft.groups and not any(each.node.find(exp.AggFunc) for each in draft.items):
                    raise scope.refusal(node, *ROWS_ARE_HIDDEN)
                problem = "this is neither an aggregate nor in GROUP BY"
                raise scope.refusal(node, problem, "Add it to GROUP BY, or sum it.")
            shown.append(group.label)
            continue
        formula = collector.formula(node)
        possible, adds_up = collector.possible(node)
        outputs.append(AnswerColumn(item.alias or name_of(node), formula, True, possible, adds_up))
    first = draft.items[0].node
    if not collector.sums:
        raise scope.refusal(first, "nothing is aggregated", "Ask for COUNT(*), SUM or AVG.")
    _check_names(scope, first, [output.name for output in outputs], shown)
    return replace(draft, shown_groups=tuple(shown), sums=collector.sums, outputs=tuple(outputs))


def _check_names(scope: Scope, node: Node, answers: list[str], groups: list[str]) -> None:
    """Every column of an exported answer needs a name of its own."""
    names = [*answers, *groups]
    if len({name.casefold() for name in names}) != len(names):
        raise scope.refusal(node, "two answers have the same name", "Name them with AS.")
    of_errors = {f"{name}{ending}".casefold() for name in answers for ending in ERROR_COLUMNS}
    if clash := [name for name in names if name.casefold() in of_errors]:
        problem = f"{clash[0]!r} is also the name of a column with the error of another answer"
        raise scope.refusal(node, problem, "Give it another name with AS.")


def filter_answers(draft: Draft) -> Draft:
    """HAVING."""
    having = draft.select.args.get("having")
    if having is None:
        return draft
    collector = _collector(draft)
    return replace(draft, having=_having(draft, collector, having.this), sums=collector.sums)


def _having(draft: Draft, collector: SumCollector, node: Node) -> Having:
    def formula(part: Node) -> Any:
        return collector.formula(_with_items(draft, part))

    if isinstance(node, exp.Paren):
        return _having(draft, collector, node.this)
    meant = _with_items(draft, node)
    if not meant.find(exp.AggFunc, exp.Subquery) and meant.find(exp.Column) and _is_of_groups(draft, meant):
        # All rows of a group meet it, or none does, and then no report adds to their number.
        return HavingComparison("<>", collector.formula(exp.CountIf(this=meant.copy())), Number(0.0))
    if isinstance(node, exp.Not) and isinstance(inner := without_parentheses(node.this), (exp.And, exp.Or)):
        sides = [exp.Not(this=exp.Paren(this=side.copy())) for side in (inner.left, inner.right)]  # NULL stays NULL
        return _having(
            draft, collector, (exp.Or if isinstance(inner, exp.And) else exp.And)(this=sides[0], expression=sides[1])
        )
    if isinstance(node, exp.Not):
        return HavingLogic("not", (_having(draft, collector, node.this),))
    if isinstance(node, (exp.And, exp.Or)):
        sign = "and" if isinstance(node, exp.And) else "or"
        return HavingLogic(sign, (_having(draft, collector, node.left), _having(draft, collector, node.right)))
    if isinstance(node, exp.Between):
        middle, low, high = (formula(node.args[part]) for part in ("this", "low", "high"))
        return HavingLogic("and", (HavingComparison(">=", middle, low), HavingComparison("<=", middle, high)))
    if type(node) in COMPARISONS:
        return HavingComparison(_COMPARISON_SIGNS[type(node)], formula(node.left), formula(node.right))
    raise draft.scope.refusal(node, "HAVING compares aggregates", "Put other conditions in WHERE.")


def order_answers(draft: Draft) -> Draft:
    """ORDER BY: what is ordered by and not asked for becomes an output that is not shown."""
    order = draft.select.args.get("order")
    collector, outputs, orderings = _collector(draft), list(draft.outputs), []
    for key in [] if order is None else order.expressions:
        descending = bool(key.args.get("desc"))
        inner = without_parentheses(_with_items(draft, item_meant(draft.scope, key.this, draft.items)))
        if inner.find(exp.Column) and not inner.find(exp.AggFunc):
            group = draft.groups.get(normal_form(draft.scope, inner))
            if group is None:
                problem = "ORDER BY uses something that the query does not select"
                raise draft.scope.refusal(key, problem, "Order by an answer.")
            orderings.append(Ordering(group.label, descending, group=True))
            continue
        formula = collector.formula(_with_items(draft, inner))
        name = next((output.name for output in outputs if output.formula == formula), None)
        if name is None:
            name = f"order key {len(outputs)}"
            outputs.append(AnswerColumn(name, formula, shown=False))
        orderings.append(Ordering(name, descending))
    return replace(draft, order=tuple(orderings), outputs=tuple(outputs), sums=collector.sums)


def limit_answers(draft: Draft) -> Draft:
    """LIMIT and OFFSET."""
    limit, offset = (_count(draft, draft.select.args.get(clause)) for clause in ("limit", "offset"))
    return replace(draft, limit=limit, offset=offset or 0)


def _count(draft: Draft, node: Node) -> int | None:
    if node is None:
        return None
    value = node.args.get("expression")
    if not isinstance(value, exp.Literal) or value.is_string or not WHOLE_NUMBER.fullmatch(value.this):
        raise draft.scope.refusal(node, "LIMIT and OFFSET take a whole number", "Write LIMIT 10.")
    return int(value.this)


def share_tests(draft: Draft) -> Draft:
    """Tests of public attributes that every term makes are made once, for all rows; the terms lose them."""
    terms = [term for collected in draft.sums for term in collected.moment.terms]
    optional = draft.scope.optional  # whoever has no row there may have to be counted all the same
    tests = [
        {(table, test) for table, factor in term.public.items() if table not in optional for test in factor.tests}
        for term in terms
    ]
    common = set.intersection(*tests) if tests else set()
    if any(isinstance(group, PublicGroups) for group in draft.groups.values()):
        # A group that WHERE lets through is shown, even if none of its rows counts: COUNT(x) where x is NULL.
        for conjunction in draft.rows:
            common &= set(_tests_of(conjunction))
    filters: dict[str, tuple[PublicTest, ...]] = {}
    for table, test in sorted(common):
        filters[table] = (*filters.get(table, ()), test)
    moments = (
        replace(collected.moment, terms=tuple(_without_tests(term, common) for term in collected.moment.terms))
        for collected in draft.sums
    )
    return replace(draft, filters=filters, moments=tuple(moments))


def _tests_of(conjunction: Conjunction) -> Iterator[tuple[str, PublicTest]]:
    for (table, test), wanted in conjunction.public.items():
        yield table, (test, wanted)


def note_constants(draft: Draft) -> Draft:
    """Notes about constants that no value of an attribute equals: they are allowed, and may be a mistake."""
    return replace(draft, notes=tuple(dict.fromkeys(outside_notes(draft.scope, draft.select))))


def _without_tests(term: Term, common: set[tuple[str, PublicTest]]) -> Term:
    left = {
        table: PublicFactor(tuple(test for test in factor.tests if (table, test) not in common), factor.measure)
        for table, factor in term.public.items()
    }
    return replace(term, public={table: factor for table, factor in left.items() if factor.tests or factor.measure})


def _collector(draft: Draft) -> SumCollector:
    apart = frozenset(
        group.attribute[0] for group in draft.groups.values() if isinstance(group, PrivateGroups) and group.alone >= 0
    )
    return SumCollector(draft.scope, draft.rows, draft.sums, centred=draft.centred, apart=apart)


def _with_items(draft: Draft, node: Node) -> Node:
    """An expression of HAVING or ORDER BY with select items in the place of their aliases."""
    named = by_alias(draft.items)

    def replaced(part: Node) -> Node:
        plain = isinstance(part, exp.Column) and not part.table and not part.find_ancestor(exp.AggFunc)
        meant = named.get(part.name.casefold()) if plain else None
        return part if meant is None else exp.Paren(this=meant.copy())

    return node.copy().transform(replaced)


ROWS_ARE_HIDDEN = (
    "rows of single people cannot be shown, only aggregates",
    "Ask for numbers in groups: SELECT x, COUNT(*) FROM t GROUP BY x; or for SUM, AVG, MEDIAN of a column.",
)
Pass = Callable[[Draft], Draft]
PASSES: tuple[Pass, ...] = (
    read_tree,
    flatten_sources,
    name_sources,
    select_rows,
    list_items,
    group_rows,
    choose_groups,
    sum_items,
    filter_answers,
    order_answers,
    limit_answers,
    share_tests,
    note_constants,
)
"""The order is part of what users see: the first pass that cannot go on says why."""
