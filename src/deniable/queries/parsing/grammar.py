"""Which parts each kind of node may have: SQL text → a tree without any part that would be ignored.

The passes of a query look at the parts they know. A part that none of them looks at (a sample of a table, a second
argument of COUNT, NULLS FIRST) would be ignored silently, and the answer would be that of another question. So every
part of every known node is listed here, or in `functions.py` for functions, and a node with any other part is refused.
Kinds of nodes that are not listed are refused by the passes, each of which takes the kinds it knows and no others.

sqlglot forgives: it reads over a missing AND or bracket. So DuckDB's parser, which does not, sees the text first.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.limits import DEEPEST_BRACKETS, LONGEST_NAME, LONGEST_SQL, MOST_TOKENS
from deniable.queries.parsing.column_names import with_names
from deniable.queries.parsing.functions import parts_of
from deniable.queries.parsing.restated_questions import without_all

_SURROGATE = re.compile("[\ud800-\udfff]")
_MEND = "Correct the text there; put a name that is a keyword in double quotes."
_THIS = frozenset({"this"})
_BINARY = frozenset({"this", "expression"})
_PARTS: dict[Any, set[str] | frozenset[str]] = {
    exp.From: {"this"},
    exp.Join: {"this", "on", "using", "kind", "side", "method"},
    exp.Table: {"this", "alias", "db", "catalog"},
    exp.TableAlias: {"this"},
    exp.Filter: {"this", "expression"},
    exp.Where: {"this"},
    exp.Group: {"expressions", "all", "rollup", "cube", "grouping_sets"},
    exp.Having: {"this"},
    exp.Order: {"expressions"},
    exp.Ordered: {"this", "desc"},
    exp.Limit: {"expression"},
    exp.Offset: {"expression"},
    exp.Alias: {"this", "alias"},
    exp.Column: {"this", "table", "db", "catalog"},
    exp.Identifier: {"this", "quoted"},
    exp.Literal: {"this", "is_string"},
    exp.Star: set(),
    exp.Count: {"this", "big_int", "distinct"},
    exp.CountIf: {"this"},
    **dict.fromkeys((exp.Paren, exp.Not, exp.Boolean, exp.Null), _THIS),
    **dict.fromkeys((exp.And, exp.Or, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is), _BINARY),
    exp.Between: {"this", "low", "high"},
    exp.In: {"this", "expressions", "query"},
    exp.Cast: {"this", "to"},
    exp.DataType: {"this", "nested", "expressions"},
}
_CLAUSES = {"expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"}
_WHY = {
    "distinct": ("DISTINCT is not supported", "Use GROUP BY."),
    "with_": ("WITH is not supported", "Ask one SELECT."),
    "windows": ("windows are not supported", "Use GROUP BY."),
    "qualify": ("QUALIFY is not supported", "Use HAVING."),
    "nulls_first": ("NULLS FIRST is not supported: what is unclear comes last", "Leave it out."),
}


def position_of(text: str, node: Any) -> int | None:
    """Where in the text a node begins, as far as its parts show; for keywords, where such a word stands first."""
    if node is None:
        return None
    starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    if starts:
        unnamed = isinstance(node, exp.AggFunc) and "start" not in node.meta
        return _with_name(text, int(min(starts))) if unnamed else int(min(starts))
    word = re.match(r"\w+", str(node.sql(dialect="duckdb")))
    start = None if word is None else _word(text, word[0])
    return position_of(text, node.parent) if start is None else start


def _with_name(text: str, start: int) -> int:
    """Where an aggregate begins: at its name, which not every version of the parser tells."""
    name = re.search(r"\w+\s*\(\s*$", text[:start])
    return start if name is None else name.start()


def _word(text: str, word: str) -> int | None:
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except sqlglot.errors.SqlglotError:
        return None
    return next(
        (token.start for token in tokens if text[token.start : token.end + 1].casefold() == word.casefold()), None
    )


def read_select(text: str) -> Any:
    """The tree of a text that is one SELECT; `check_parts` looks at what is in it."""
    tree = read_question(text)
    if not isinstance(tree, exp.Select):
        raise QueryRefused("one SELECT is expected", "Ask its parts one by one.", text=text, start=0)
    return tree


def split_statements(text: str) -> list[str]:
    """The statements of a text, which semicolons divide."""
    if not isinstance(text, str) or ";" not in text:
        return [text]
    check_size(text)
    try:
        pieces = [str(piece.query).strip().rstrip(";") for piece in _parser().extract_statements(text)]
    except duckdb.Error:
        return [text]  # reading it will say where it is broken
    return pieces or [text]


def read_question(text: str) -> Any:
    """The tree of a text that is one SELECT, or several joined by UNION."""
    if not isinstance(text, str) or not text.strip():
        raise QueryRefused("there is no text", "Write SELECT COUNT(*) FROM …")
    if half := _SURROGATE.search(text):  # which DuckDB cannot be handed
        shown = text.encode(errors="replace").decode()
        raise QueryRefused("the text has an unpaired surrogate", "Write UTF-8.", text=shown, start=half.start())
    check_size(text)
    try:
        _parser().extract_statements(text)
        statements = sqlglot.parse(text, read="duckdb")
    except duckdb.Error as error:
        raise QueryRefused("the text is not SQL", _MEND, text=text, start=_broken_at(text, str(error))) from None
    except sqlglot.errors.SqlglotError as error:
        raise QueryRefused("the text is not understood", _MEND, text=text, start=_lost_at(text, error)) from None
    if len(statements) != 1 or not isinstance(statements[0], (exp.Select, exp.Union)):
        second = statements[1] if len(statements) > 1 else None
        repair = "Write SELECT COUNT(*) FROM …"
        raise QueryRefused("one SELECT is expected", repair, text=text, start=position_of(text, second) or 0)
    return with_names(statements[0].transform(_known_spelling), text)


def _known_spelling(node: Any) -> Any:
    """What means the same: DATE_PART('year', d) as EXTRACT(year FROM d), GROUP BY ALL as the columns it stands for."""
    if isinstance(node, exp.Select):
        return without_all(node)
    if isinstance(node, exp.Fetch) and not any(
        (node.args.get("limit_options") or exp.LimitOptions()).args.get(part) for part in ("percent", "with_ties")
    ):
        return exp.Limit(expression=node.args.get("count") or exp.Literal.number(1))  # FETCH FIRST 10 ROWS ONLY
    if isinstance(node, exp.EQ) and isinstance(node.expression, exp.Any):
        listed = node.expression.this
        while isinstance(listed, exp.Paren):
            listed = listed.this
        if isinstance(listed, exp.Array):  # x = ANY ([1, 2])
            return exp.In(this=node.this, expressions=listed.expressions)
    if isinstance(node, exp.In) and isinstance(node.this, exp.Tuple):
        return _in_pairs(node)
    if isinstance(node, exp.NEQ) and isinstance(node.expression, exp.Anonymous):  # x <> ALL ([1, 2])
        (listed,) = node.expression.expressions if len(node.expression.expressions) == 1 else (None,)
        if str(node.expression.this).upper() == "ALL" and isinstance(listed, exp.Array):
            return exp.Not(this=exp.In(this=node.this, expressions=listed.expressions))
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("geomean", "geometric_mean"):
        return exp.Exp(this=exp.Avg(this=exp.Ln(this=node.expressions[0])))
    if isinstance(node, exp.Group) and len(node.expressions) == 1 and not node.args.get("all"):
        (only,) = node.expressions
        if isinstance(only, exp.Tuple) and not only.expressions and not node.find(exp.Rollup, exp.Cube):
            return None  # GROUP BY ()
    if isinstance(node, exp.Anonymous) and str(node.this).lower() in ("date_part", "datepart"):
        unit, *rest = node.expressions
        if isinstance(unit, exp.Literal) and unit.is_string and len(rest) == 1:
            return exp.Extract(this=exp.Var(this=str(unit.this).upper()), expression=rest[0])
    return node


def _in_pairs(node: Any) -> Any:
    """(a, b) IN ((1, 2), (3, 4)), as comparisons."""
    columns = node.this.expressions
    rows = [each.expressions for each in node.expressions if isinstance(each, exp.Tuple)]
    if node.args.get("query") or len(rows) < len(node.expressions) or any(len(row) != len(columns) for row in rows):
        return node
    equal = [
        exp.and_(*(exp.EQ(this=left.copy(), expression=right) for left, right in zip(columns, row, strict=True)))
        for row in rows
    ]
    return exp.Paren(this=exp.or_(*equal))


def check_parts(text: str, select: Any) -> None:
    """Refuse a tree that has a part which would be ignored."""
    for clause, value in select.args.items():
        if value and clause not in _CLAUSES:
            word = clause.strip("_").upper()
            why = _WHY.get(clause, (f"the clause {word} is not supported", "Leave it out."))
            start = _word(text, word)
            raise QueryRefused(*why, text=text, start=start if start is not None else _first(text, value))
    for node in select.walk():
        if isinstance(node, exp.Identifier) and len(node.name) > LONGEST_NAME:
            problem = f"a name has more than {LONGEST_NAME} characters"
            raise QueryRefused(problem, "Shorten it.", text=text, start=position_of(text, node))
        allowed = _PARTS[type(node)] if type(node) in _PARTS else parts_of(type(node))
        if allowed is None:
            continue
        for part, value in node.args.items():
            if value and part not in allowed:
                kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__).upper()
                why = _WHY.get(
                    part, (f"{part.strip('_').replace('_', ' ').upper()} of {kind} is not supported", "Leave it out.")
                )
                raise QueryRefused(*why, text=text, start=position_of(text, node))


def check_size(text: str) -> None:
    """Refuse what a parser would need minutes and gigabytes for; counting its tokens takes neither."""
    if len(text) > LONGEST_SQL:
        raise QueryRefused(f"the text is longer than {LONGEST_SQL:,} characters", "Ask a shorter question.")
    if half := _SURROGATE.search(text):  # which DuckDB cannot be handed
        shown = text.encode(errors="replace").decode()
        raise QueryRefused("the text has an unpaired surrogate", "Write UTF-8.", text=shown, start=half.start())
    if "\0" in text:  # where some versions of DuckDB stop reading
        raise QueryRefused("the text has a NUL character", "Leave it out.", text=text, start=text.index("\0"))
    raw = text.encode()
    starts = [start for start, kind in duckdb.tokenize(text) if kind != duckdb.token_type.comment]
    if len(starts) > MOST_TOKENS:
        raise QueryRefused(f"the text has over {MOST_TOKENS:,} words and signs", "Ask a shorter question.")
    depth = 0
    for start in starts:
        depth += (raw[start] in b"([{") - (raw[start] in b")]}")
        if depth > DEEPEST_BRACKETS:
            problem = f"brackets are nested more than {DEEPEST_BRACKETS} deep"
            raise QueryRefused(problem, "Ask a simpler question.", text=text, start=len(raw[:start].decode()))


def _first(text: str, value: Any) -> int | None:
    node = value[0] if isinstance(value, list) else value
    return position_of(text, node) if isinstance(node, exp.Expression) else None


@cache
def _parser() -> duckdb.DuckDBPyConnection:
    """An empty database of which only the parser is used; it could open nothing."""
    return duckdb.connect(config={"enable_external_access": False, "lock_configuration": True})


def _broken_at(text: str, message: str) -> int:
    """Where DuckDB stopped: its message repeats a line, or a part of it, and marks the position below it."""
    marked = re.search(r"LINE (?P<line>[0-9]+): (?P<shown>.*)\n(?P<indent> *)\^", message)
    if marked is None:
        return len(text.rstrip()) if "end of input" in message else 0
    lines = text.split("\n")[: int(marked["line"]) - 1]
    shown = marked["shown"].removeprefix("...")
    offset = len(marked["indent"]) - len(f"LINE {marked['line']}: ") - (len(marked["shown"]) - len(shown))
    start = text.find(shown.removesuffix("..."), sum(len(line) + 1 for line in lines))
    if start < 0:  # the message shows the line differently from the text
        near = re.search(r'at or near "(.+)"', message)
        start, offset = max(text.find(near[1]), 0) if near else 0, 0
    return min(max(start + offset, 0), len(text))


def _lost_at(text: str, error: Any) -> int | None:
    """Where sqlglot stopped: at the end of a token that it names by line and column."""
    details = (getattr(error, "errors", None) or [{}])[0]
    lines = text.split("\n")
    if not isinstance(details.get("line"), int) or not 1 <= details["line"] <= len(lines):
        return None
    end = sum(len(line) + 1 for line in lines[: details["line"] - 1]) + int(details.get("col") or 0)
    return max(min(end, len(text)) - len(details.get("highlight") or ""), 0)
