"""Plain SQL → Spark SQL: questions about registered tables become calls of the table function that answers them.

The paper's system rewrites ordinary SQL into calls of registered functions  [XDW20, Section 7]. Spark's own place for
that, `SparkSessionExtensions.injectParser`, takes classes of the JVM when a session starts, and a Python package has
none. So `spark.sql` of the registered session is replaced, and each statement is looked at before Spark sees it:

* A statement without a registered table passes untouched, and so does one that perturbs rows by `deniable_<table>`.
* A SELECT from registered tables (and dimensions) alone is a question, as a statement or inside one. It is replaced.
* A SELECT that joins a registered table with anything else is refused: reports have no rows that Spark could join.
* A statement that reads a registered table in any other way is refused too. It may create, fill or drop one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sqlglot
from sqlglot import Token, TokenType, exp

from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.parsing.scope import Node

SPARK = "spark"
FUNCTION_PREFIX = "deniable_"
QUESTION_FUNCTION = "deniable_sql"
"""The table function that answers."""
_OTHER = (TokenType.COMMAND, TokenType.SHOW, TokenType.DESCRIBE)
"""How statements begin that sqlglot does not read, and that ask nothing."""
_READING = frozenset({"identifier", "stream", "table"})
"""Words before a name, with or without a bracket, that read the rows of a table where no SELECT does."""
_MANAGING = frozenset({
    "alter", "analyze", "cache", "create", "desc", "describe", "drop", "extended", "external", "formatted", "into",
    "lazy", "msck", "on", "overwrite", "refresh", "repair", "replace", "temporary", "truncate", "uncache",
})  # fmt: skip
"""Words before TABLE in statements that manage a table."""
_STATEMENTS = (
    exp.Alter, exp.Analyze, exp.Cache, exp.Comment, exp.Create, exp.Delete, exp.Drop, exp.Grant, exp.Insert,
    exp.LikeProperty, exp.Merge, exp.Refresh, exp.TruncateTable, exp.Uncache, exp.Update,
)  # fmt: skip
"""Statements whose own table is managed, not read."""


@dataclass(frozen=True, slots=True)
class KnownTables:
    """What a registered session knows by name: tables of reports, and dimensions that questions may join."""

    tables: frozenset[str]
    dimensions: frozenset[str]

    @classmethod
    def of(cls, tables: Iterable[str], dimensions: Iterable[str]) -> KnownTables:
        """Names in any case: Spark does not distinguish."""
        return cls(frozenset(map(str.lower, tables)), frozenset(map(str.lower, dimensions)))

    def is_reports(self, source: Node) -> bool:
        """Whether a source of rows is a registered table; a name with its catalog or schema is Spark's."""
        return isinstance(source, exp.Table) and not source.db and source.name.lower() in self.tables

    def answers(self, source: Node) -> bool:
        """Whether a question may read a source of rows."""
        named = isinstance(source, exp.Table) and not source.db and source.name.lower() in self.dimensions
        return named or self.is_reports(source)


@dataclass(frozen=True, slots=True)
class RewritingSql:
    """Stands in for the `sql` of a registered session. `stop` ends what answers its questions."""

    spark_sql: Callable[..., Any]
    known: KnownTables
    stop: Callable[[], None]

    def __call__(self, sqlQuery: str, args: Any = None, **values: Any) -> Any:
        """The DataFrame of a statement, its questions about registered tables answered from reports."""
        if values and _names(sqlQuery, self.known):
            problem = "cannot be put into a statement about registered tables by name"
            raise InvalidParameter("values", problem, "Write :name in the statement, and pass args={'name': value}.")
        text = None if values else rewritten(sqlQuery, self.known, args)
        return self.spark_sql(sqlQuery, args, **values) if text is None else self.spark_sql(text)


def rewritten(text: str, known: KnownTables, parameters: Mapping[str, Any] | Sequence[Any] | None = None) -> str | None:
    """A statement with its questions replaced and its parameters filled in; None if it is not about known tables.

    >>> shop = KnownTables.of(["users", "orders"], [])
    >>> rewritten("SELECT COUNT(*) AS n FROM users WHERE age < 48", shop)
    "SELECT * FROM deniable_sql('SELECT COUNT(*) AS n FROM users WHERE age < 48')"
    >>> rewritten("SELECT COUNT(*) FROM cities", shop)
    """
    tokens = _tokens(text)
    if not _names(text, known) or tokens[0].token_type in _OTHER or _perturbs(tokens, known):
        return None
    tree = _bound(text, tokens, parameters) if parameters else _tree(text)
    questions = list(_questions(tree, known))
    if _reads_words(tokens, known) or _reads_tables(tree, questions, known):
        problem = "the statement reads a registered table other than by a SELECT from it"
        raise QueryRefused(problem, "Write SELECT … FROM the table, without brackets around it.")
    if not questions:
        return None
    if questions[0] is tree and not parameters:
        return _calling(_in_our_quotes(text, tokens)).sql(dialect=SPARK, normalize_functions=False)
    for question in questions:
        printed = question.sql(dialect=SPARK)
        call = _calling(_in_our_quotes(printed, _tokens(printed)))
        tree = call if question is tree else question.replace(call).root()
    return str(tree.sql(dialect=SPARK, normalize_functions=False))


def _tokens(text: str) -> list[Token]:
    try:
        return list(sqlglot.tokenize(text, read=SPARK))
    except sqlglot.errors.SqlglotError:
        return []  # Spark says better what is wrong


def _names(text: str, known: KnownTables) -> bool:
    """Whether a word of a statement is the name of a registered table."""
    return any(token.text.lower() in known.tables for token in _tokens(text))


def _tree(text: str) -> Node:
    """The statement as a tree. One that names a registered table and is not understood must not reach its rows."""
    try:
        tree: Node = sqlglot.parse_one(text, read=SPARK)
    except sqlglot.errors.SqlglotError:
        tree = exp.Column()
    if isinstance(tree, exp.Condition | exp.Alias):  # a statement by a new name reads like an expression
        problem = "the statement names a registered table and could not be read"
        raise QueryRefused(problem, "Write a SELECT, or ask with deniable_sql('…').")
    return tree


def _perturbs(tokens: Sequence[Token], known: KnownTables) -> bool:
    """Whether a statement turns rows into reports: then its tables are the rows, not their reports."""
    functions = {FUNCTION_PREFIX + name for name in known.tables}
    calls = (name.text.lower() for name, after in pairwise(tokens) if after.token_type == TokenType.L_PAREN)
    return any(name in functions for name in calls)


def _questions(tree: Node, known: KnownTables) -> Iterator[exp.Select]:
    """The outermost SELECTs that read registered tables."""
    named = next((query for query in tree.find_all(exp.CTE) if query.alias.lower() in known.tables), None)
    if named is not None:
        problem = f"WITH names a query {named.alias!r}, which is a registered table"
        raise QueryRefused(problem, "Give the query another name.")
    inside: set[int] = set()
    for select in tree.find_all(exp.Select, bfs=True):
        sources = _sources(select)
        if id(select.parent_select) in inside:
            inside.add(id(select))
        elif any(known.is_reports(source) for source in sources):
            other = next((source for source in sources if not known.answers(source)), None)
            if other is not None:
                problem = f"a registered table cannot be joined with {other.alias_or_name or 'a query'!r}"
                advice = "Ask in a sub-query and join its answer, or register the other table with dimensions=."
                raise QueryRefused(problem, advice)
            inside.add(id(select))
            yield select


def _reads_words(tokens: Sequence[Token], known: KnownTables) -> bool:
    """Whether TABLE, or another word that sqlglot may take for a name, reads a registered table."""
    words = [token.text.lower() for token in tokens if token.token_type != TokenType.L_PAREN]
    for before, word, name in zip(["", *words], words, words[1:], strict=False):
        if name in known.tables and word in _READING and not (word == "table" and before in _MANAGING):
            return True
    return False


def _reads_tables(tree: Node, questions: Sequence[Node], known: KnownTables) -> bool:
    """Whether a registered table stands where rows are read, outside all questions."""
    asked = {id(question) for question in questions}
    for table in filter(known.is_reports, tree.find_all(exp.Table)):
        node = table.parent if isinstance(table.parent, exp.Schema) else table
        managed = isinstance(node.parent, _STATEMENTS) and node.arg_key not in ("expression", "using")
        above = table.parent
        while above is not None and id(above) not in asked:
            above = above.parent
        if above is None and not managed:
            return True
    return False


def _sources(select: exp.Select) -> list[Node]:
    """What FROM and JOIN read; tables in brackets are taken out of them."""
    first = select.args.get("from_") or select.args.get("from")
    sources = []
    for clause in (first, *(select.args.get("joins") or ())):
        source = None if clause is None else clause.this
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Table):
            joins = [join for node in (source.this, source) for join in node.args.get("joins") or ()]
            sources += [source.this, *(join.this for join in joins)]
        elif source is not None:
            sources.append(source)
    return sources


def _bound(text: str, tokens: Sequence[Token], parameters: Mapping[str, Any] | Sequence[Any]) -> Node:
    """The statement with its parameters as literals; markers without a name are numbered in the order of the text."""
    if not isinstance(parameters, Mapping):
        markers = [token for token in tokens if token.token_type == TokenType.PLACEHOLDER]
        for number in range(len(markers) - 1, -1, -1):
            text = f"{text[: markers[number].start]}:marker{number}{text[markers[number].end + 1 :]}"
        parameters = {f"marker{number}": value for number, value in enumerate(parameters)}
    tree = _tree(text)
    for marker in list(tree.find_all(exp.Placeholder)):
        if marker.name not in parameters:
            raise InvalidParameter("args", "lack a parameter of the statement", "Pass one for each marker.")
        try:
            marker.replace(exp.convert(parameters[marker.name]))
        except ValueError:
            raise InvalidParameter("args", "have a value that is not a literal", "Pass numbers and text.") from None
    return tree


def _calling(question: str) -> exp.Select:
    call = exp.Anonymous(this=QUESTION_FUNCTION, expressions=[exp.Literal.string(question)])
    return exp.select("*").from_(exp.Table(this=call))


def _in_our_quotes(text: str, tokens: Sequence[Token]) -> str:
    """Spark's text with names in double quotes and strings in single ones; everything else as it stands."""
    parts, end = [], 0
    for token in tokens:
        if token.token_type in (TokenType.STRING, TokenType.RAW_STRING, TokenType.IDENTIFIER):
            quote = '"' if token.token_type == TokenType.IDENTIFIER else "'"
            parts += [text[end : token.start], quote, token.text.replace(quote, 2 * quote), quote]
            end = token.end + 1
    return "".join(parts) + text[end:]
