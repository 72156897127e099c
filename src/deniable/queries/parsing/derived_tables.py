"""WITH, derived tables and semi-joins → one SELECT from tables, as BI tools wrap every query.

A derived table of rows is merged into the query around it: its columns are put in the place of their names, its
conditions are joined by AND. A derived table of aggregates stays what it is, and what the outer query says of its
columns is said of the aggregates: WHERE becomes HAVING, and a SUM of counts a count.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.dimension_lists import with_dimension_lists
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.grammar import position_of
from deniable.queries.parsing.outer_joins import with_left_joins, with_named_partners
from deniable.queries.parsing.semi_joins import with_semi_joins
from deniable.queries.parsing.source_names import conjuncts, with_named_joins, without_schemas
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.specification import Specification

Node = Any
_ROW_CLAUSES = ("group", "having", "order", "limit", "offset", "distinct")
_AFTERWARDS = ("order", "limit", "offset")
_SUMMED = (exp.Sum, exp.Count, exp.CountIf)


def flattened(
    text: str,
    select: Node,
    collection: Specification,
    key: str,
    dimensions: Mapping[str, Dimension] = MappingProxyType({}),
) -> Node:
    """The same question as one SELECT from tables."""
    keys = {USER_COLUMN, key.casefold()}
    made = _with_source(_Flattening(text, collection, keys, dimensions).select(select.copy(), {}))
    return with_named_partners(made, collection, keys) if made.args.get("joins") else made


def _with_source(select: Node) -> Node:
    """SELECT (SELECT COUNT(*) FROM a) / (SELECT COUNT(*) FROM b), without FROM, is a question about the first table."""
    if select.args.get("from_") is not None:
        return select
    for node in select.find_all(exp.Subquery):
        source = node.this.args.get("from_")
        if source is not None:
            select.set("from_", source.copy())
            select.set("joins", [join.copy() for join in node.this.args.get("joins") or []])
            break
    return select


class _Flattening:
    def __init__(
        self, text: str, collection: Specification, keys: set[str], dimensions: Mapping[str, Dimension]
    ) -> None:
        self._text, self._collection, self._keys, self._dimensions = text, collection, keys, dimensions

    def refusal(self, node: Node, problem: str, repair: str) -> QueryRefused:
        return QueryRefused(problem, repair, text=self._text, start=position_of(self._text, node))

    def select(self, select: Node, known: dict[str, Node]) -> Node:
        """A SELECT without WITH and derived tables."""
        known = dict(known)
        for table in (select.args.get("with_") or exp.With(expressions=[])).expressions:
            if select.args["with_"].args.get("recursive") or not isinstance(table.this, exp.Select):
                raise self.refusal(table, "WITH takes SELECTs, not recursive", "Write WITH t AS (SELECT …).")
            inner = self.select(table.this, known)
            known[table.alias.casefold()] = exp.Subquery(this=inner, alias=table.args["alias"])
        select.set("with_", None)
        without_schemas(select)
        self._subqueries(select, known)
        source = select.args.get("from_")
        if source is None:
            return select
        if (alone := self._single_answers(select, known)) is not None:
            return alone
        with_dimension_lists(select, self._dimensions, self.refusal)
        with_semi_joins(select, self._collection, self._keys, self.refusal)
        with_named_joins(select, self._keys)
        with_left_joins(select)
        for holder in (source, *(select.args.get("joins") or [])):
            table = holder.this
            if isinstance(table, exp.Table) and table.name.casefold() in known:
                meant = known[table.name.casefold()].copy()
                names = (meant.args.get("alias") or exp.TableAlias()).args.get("columns")
                alias = exp.TableAlias(this=exp.to_identifier(table.alias or table.name), columns=names)
                table = exp.Subquery(this=meant.this, alias=alias)
            if isinstance(table, exp.Subquery):
                if not isinstance(table.this, exp.Select):
                    raise self.refusal(table, "a derived table is one SELECT", "Write FROM (SELECT …) AS t.")
                inner = self.select(table.this, known)
                select = self._merged(select, holder, _Derived.of(self, table, inner))
        return select

    def _subqueries(self, select: Node, known: dict[str, Node]) -> None:
        """Numbers in brackets, (SELECT … FROM t), where t may be a table of WITH."""
        for clause in ("expressions", "where", "having"):
            value = select.args.get(clause)
            for part in value if isinstance(value, list) else [value] if value is not None else []:
                for node in list(part.find_all(exp.Subquery)):
                    if isinstance(node.this, exp.Select) and not isinstance(node.parent, exp.In):
                        node.set("this", self.select(node.this.copy(), known))

    def _single_answers(self, select: Node, known: dict[str, Node]) -> Node | None:
        """SELECT a.n / b.m FROM a, b, where both are one row of answers, as a SELECT of numbers; None for any other."""
        columns: dict[tuple[str, str], Node] = {}
        for holder in (select.args["from_"], *(select.args.get("joins") or [])):
            table = holder.this
            if isinstance(table, exp.Table) and table.name.casefold() in known:
                alias, meant = table.alias or table.name, known[table.name.casefold()].this
            elif isinstance(table, exp.Subquery) and isinstance(table.this, exp.Select):
                alias, meant = table.alias, self.select(table.this.copy(), known)
            else:
                return None
            plain = not any(meant.args.get(clause) for clause in _ROW_CLAUSES) and not holder.args.get("on")
            if not plain or not all(item.alias and item.find(exp.AggFunc) for item in meant.expressions):
                return None
            for item in meant.expressions:
                number = meant.copy()
                number.set("expressions", [item.copy()])
                for name in ((alias.casefold(), item.alias.casefold()), ("", item.alias.casefold())):
                    columns[name] = exp.Subquery(this=number)
        if not select.args.get("joins") or any(select.args.get(clause) for clause in ("where", *_ROW_CLAUSES)):
            return None

        def replaced(part: Node) -> Node:
            if not isinstance(part, exp.Column):
                return part
            return columns.get((part.table.casefold(), part.name.casefold()), part).copy()

        items = [
            exp.Alias(this=item.transform(replaced), alias=exp.to_identifier(item.name, quoted=True))
            if isinstance(item, exp.Column)
            else item.transform(replaced)
            for item in select.expressions
        ]
        return exp.Select(expressions=items)

    # A derived table and the query around it ------------------------------------------------------------------------

    def _merged(self, select: Node, holder: Node, derived: _Derived) -> Node:
        if derived.aggregated:
            return self._of_aggregates(select, holder, derived)
        inner = derived.select
        if any(inner.args.get(clause) for clause in ("distinct", "limit", "offset")):
            problem = "rows of a derived table cannot be chosen: nobody's row is known"
            raise self.refusal(inner, problem, "Leave out DISTINCT and LIMIT there.")
        inner.set("order", None)
        joins = inner.args.get("joins") or []
        if joins and holder is not select.args["from_"]:
            raise self.refusal(inner, "a derived table with joins stands first", "Put it into FROM.")
        table = inner.args["from_"].this
        sides = [str(join.args.get("side") or "").upper() for join in select.args.get("joins") or []]
        if "FULL" in sides and (inner.args.get("where") or joins):
            raise self.refusal(inner, "a derived table with a condition is joined by FULL JOIN", "Put it into WHERE.")
        outer = bool(holder.args.get("side")) or "FULL" in sides
        if outer:
            derived.only_with_partner()
        if not joins:
            derived.base = derived.alias or table.alias_or_name
            table = exp.Table(this=table.this.copy(), alias=exp.TableAlias(this=exp.to_identifier(derived.base)))
        derived.replace_in(select, sole=holder is select.args["from_"] and not select.args.get("joins"))
        holder.set("this", table)
        select.set("joins", [*(join.copy() for join in joins), *(select.args.get("joins") or [])])
        condition = derived.qualified(inner.args["where"].this) if inner.args.get("where") else None
        if condition is not None and outer:
            self._check_outer(inner, holder)
            holder.set("on", exp.and_(holder.args["on"], condition))
        else:
            _add_where(select, condition)
        return select

    def _check_outer(self, inner: Node, holder: Node) -> None:
        """Conditions of a derived table that LEFT JOIN names become conditions of ON."""
        if str(holder.args["side"]).upper() != "LEFT" or holder.args.get("on") is None:
            repair = "Write LEFT JOIN (SELECT … WHERE …) AS t ON t.uid = s.uid."
            raise self.refusal(inner, "a derived table with a condition is joined in another way", repair)

    def _of_aggregates(self, select: Node, holder: Node, derived: _Derived) -> Node:
        """Rows of the derived table are answers: the outer query may choose, order and add them up."""
        inner = derived.select
        if holder is not select.args["from_"] or select.args.get("joins"):
            raise self.refusal(inner, "answers cannot be joined with tables", "Ask two questions.")
        adds = select.args.get("group") or any(_adds_up(item) for item in select.expressions)
        more = adds or any(select.args.get(clause) for clause in ("where", "having", *_AFTERWARDS))
        if more and any(inner.args.get(clause) for clause in ("limit", "offset")):
            raise self.refusal(inner, "LIMIT in a derived table cannot be followed by more", "Put it outside.")
        derived.replace_in(select, sole=True, keep_names=True)
        if not adds:
            made = inner.copy()
            made.set("expressions", select.expressions)
            _add_condition(made, select.args.get("where"))
            for clause in _AFTERWARDS:
                if select.args.get(clause):
                    made.set(clause, select.args[clause])
            return made
        made = select
        if made.args.get("where") is not None and made.args["where"].find(exp.AggFunc):
            raise self.refusal(made, "answers cannot be chosen and then added up", "Filter the groups instead.")
        made.set("from_", inner.args["from_"].copy())
        made.set("joins", [join.copy() for join in inner.args.get("joins") or []])
        self._added(made, derived)
        outer = made.args.get("where")
        made.set("where", None)
        _add_where(made, outer.this if outer is not None else None)
        _add_where(made, inner.args["where"].this if inner.args.get("where") else None)
        return made

    def _added(self, select: Node, derived: _Derived) -> None:
        """A SUM of counts is a count, and a SUM of sums a sum; nothing else of answers can be added up."""
        if derived.select.args.get("having"):
            raise self.refusal(derived.select, "answers cannot be chosen and then added up", "Leave out HAVING.")
        for node in list(select.find_all(exp.AggFunc)):
            outer = node.find_ancestor(exp.AggFunc)
            if outer is not None:
                continue
            inner = node.this
            while isinstance(inner, exp.Paren):
                inner = inner.this
            if isinstance(node, exp.Sum) and (chosen := _chosen_sum(inner)) is not None:
                node.replace(chosen)
                continue
            if not isinstance(node, exp.Sum) or not _is_sum(inner):
                problem = "of the answers of a derived table only sums and counts can be added up"
                raise self.refusal(derived.select, problem, "Write SUM of a COUNT(*) or SUM, or ask one SELECT.")
            node.replace(inner.copy())


class _Derived:
    """A derived table: its SELECT, and what its columns are called."""

    def __init__(self, flattening: _Flattening, select: Node, alias: str, names: list[str]) -> None:
        self._flattening, self.select, self.alias, self.base = flattening, select, alias, ""
        self.aggregated = bool(select.args.get("group")) or any(item.find(exp.AggFunc) for item in select.expressions)
        self.everything = any(isinstance(item, exp.Star) for item in select.expressions)
        items = [item for item in select.expressions if not isinstance(item, exp.Star)]
        self.columns = {
            name.casefold(): item.this if isinstance(item, exp.Alias) else item
            for item, name in zip(items, names or [item.alias_or_name for item in items], strict=False)
        }
        self.names = names or [item.alias_or_name for item in items]

    @classmethod
    def of(cls, flattening: _Flattening, table: Node, inner: Node) -> _Derived:
        alias = table.args.get("alias")
        names = [str(name.name) for name in (alias.args.get("columns") or [])] if alias is not None else []
        return cls(flattening, inner, str(table.alias or ""), names)

    def qualified(self, node: Node) -> Node:
        """An expression of the inner query, with its columns named by the table that is left of it."""
        return _with_table(node, self.base) if self.base else node.copy()

    def only_with_partner(self) -> None:
        """Columns that are computed are NULL in rows without a partner, as plain ones are by themselves."""
        key = exp.column(USER_COLUMN)
        for name, node in self.columns.items():
            if not isinstance(node, exp.Column):
                here = exp.Not(this=exp.Is(this=key.copy(), expression=exp.null()))
                self.columns[name] = exp.Case(ifs=[exp.If(this=here, true=node.copy())])

    def replace_in(self, select: Node, *, sole: bool, keep_names: bool = False) -> None:
        """Put the derived table's expressions in the place of its columns."""
        items: list[Node] = []
        for item in select.expressions:
            if self._is_star(item) and not self.everything:
                items += [
                    exp.alias_(self.qualified(node), name, quoted=True)
                    for name, node in zip(self.names, self.columns.values(), strict=True)
                ]
                continue
            named = isinstance(item, exp.Column) and not isinstance(item.this, exp.Star)
            replaced = item.transform(lambda part: self._replaced(part, sole=sole))
            items.append(exp.alias_(replaced, item.name, quoted=True) if named and replaced != item else replaced)
        select.set("expressions", items)
        named_items = {item.alias.casefold() for item in items if isinstance(item, exp.Alias)}
        names = named_items if keep_names or sole else set()
        given = named_items - set(self.columns)  # in a condition or group, a column goes before an answer's name
        for clause, node in list(select.args.items()):
            if clause in ("where", "group", "having") and node is not None:
                select.set(clause, node.transform(lambda part: self._ordered(part, given, sole=sole)))
            if clause == "order" and node is not None:
                select.set(clause, node.transform(lambda part: self._ordered(part, names, sole=sole)))
        for join in select.args.get("joins") or []:
            if join.args.get("on") is not None:
                join.set("on", join.args["on"].transform(lambda part: self._replaced(part, sole=sole)))

    def _is_star(self, item: Node) -> bool:
        """Whether an item is * or t.*, of a derived table of answers."""
        all_of_it = isinstance(item, exp.Column) and isinstance(item.this, exp.Star)
        mine = all_of_it and item.table.casefold() == self.alias.casefold()
        return isinstance(item, exp.Star) or (mine and self.aggregated)

    def _ordered(self, part: Node, names: set[str], *, sole: bool) -> Node:
        if isinstance(part, exp.Column) and not part.table and part.name.casefold() in names:
            return part
        return self._replaced(part, sole=sole)

    def _replaced(self, part: Node, *, sole: bool) -> Node:
        if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
            return part
        if part.find_ancestor(exp.Subquery) is not None:  # its columns are those of its own tables
            return part
        prefix = part.table.casefold()
        if prefix != self.alias.casefold() if prefix else not sole and part.name.casefold() not in self.columns:
            return part
        node = self.columns.get(part.name.casefold())
        if node is not None:
            made = self.qualified(node)
            return made if isinstance(made, exp.Column) else exp.Paren(this=made)
        if self.everything:
            return part if not prefix or self.base else exp.column(part.this.copy())
        known = ", ".join(self.names)
        raise self._flattening.refusal(part, f"the derived table has no column {part.name!r}", f"It has {known}.")


def _add_where(select: Node, condition: Node | None) -> None:
    if condition is not None:
        select.where(condition.copy(), copy=False)


def _add_condition(select: Node, where: Node | None) -> None:
    """An outer WHERE about answers: those about aggregates go to HAVING, the others choose groups."""
    for part in conjuncts(where.this) if where is not None else []:
        if part.find(exp.AggFunc):
            select.having(part.copy(), copy=False)
        else:
            select.where(part.copy(), copy=False)


def _adds_up(item: Node) -> bool:
    """Whether an item has an aggregate that is not one of a window."""
    return any(
        not isinstance(node.parent, exp.Window) and node.find_ancestor(exp.Subquery) is None
        for node in item.find_all(exp.AggFunc)
    )


def _is_sum(node: Node) -> bool:
    inner = node.this if isinstance(node, exp.Filter) else node
    return isinstance(inner, _SUMMED) and not isinstance(inner.this, exp.Distinct)


def _chosen_sum(node: Node) -> Node | None:
    """CASE WHEN group = 'a' THEN COUNT(*) ELSE 0 END, summed, as a count of these groups' rows; None for others."""
    if not isinstance(node, exp.Case) or node.this is not None or len(node.args["ifs"]) != 1:
        return None
    (branch,), default = node.args["ifs"], node.args.get("default")
    value = branch.args["true"]
    while isinstance(value, exp.Paren):
        value = value.this
    zero = (
        default is None
        or isinstance(default, exp.Null)
        or (isinstance(default, exp.Literal) and not float(default.this))
    )
    if not zero or not _is_sum(value) or branch.this.find(exp.AggFunc):
        return None
    own = [value.expression.this.copy()] if isinstance(value, exp.Filter) else []
    summed = value.this if isinstance(value, exp.Filter) else value
    return exp.Filter(this=summed.copy(), expression=exp.Where(this=exp.and_(branch.this.copy(), *own)))


def _with_table(node: Node, alias: str) -> Node:
    def named(part: Node) -> Node:
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star):
            return exp.Column(this=part.this.copy(), table=exp.to_identifier(alias))
        return part

    return node.copy().transform(named)
