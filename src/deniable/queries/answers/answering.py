"""A text → answers: its statements one by one, and questions that are made of several plain ones."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow as pa
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.chosen_groups import with_chosen_groups, with_notes
from deniable.queries.answers.combined_quantiles import combined_quantiles
from deniable.queries.answers.compound_answers import compound_answer, is_plain
from deniable.queries.answers.computed_columns import computed_columns
from deniable.queries.answers.descriptions import described
from deniable.queries.answers.joined_answers import joined_answers
from deniable.queries.answers.quantile_answers import Prefixes, quantile_answer
from deniable.queries.answers.result import Result
from deniable.queries.answers.summed_groups import summed_groups
from deniable.queries.answers.wide_quantiles import MOST_SINGLE_VALUES
from deniable.queries.parsing.compound_questions import Compound, PlainPart, compound_of
from deniable.queries.parsing.computed_groups import computed_groups
from deniable.queries.parsing.derived_tables import flattened
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.domain_values import (
    constant_of,
    distinct_of,
    evaluated,
    numbers_of,
    only_attribute,
    values_of,
)
from deniable.queries.parsing.grammar import read_question
from deniable.queries.parsing.quantile_questions import AskedQuantile, QuantileQuestion, quantile_question
from deniable.queries.parsing.restated_questions import histogram_counts, is_constant, values_alone
from deniable.queries.parsing.scope import Scope
from deniable.queries.parsing.statements import DESCRIBE, EXPLAIN, SHOW, statements_of
from deniable.queries.parsing.united_sums import united_sums
from deniable.tables.schema.ordinal import Ordinal
from deniable.tables.specification.specification import Specification


class AskedDatabase(Protocol):
    """What a database can do for a question."""

    @property
    def collection(self) -> Specification:
        """What the reports were made under."""

    @property
    def dimensions(self) -> Mapping[str, Dimension]:
        """Public tables, by their names."""

    @property
    def key(self) -> str:
        """What SQL may call the user id besides uid."""

    def _plain_answer(self, text: str, options: AnswerOptions) -> Result: ...
    def _prefixes(self, text: str, options: AnswerOptions) -> Prefixes: ...
    def _is_planned(self, text: str, options: AnswerOptions) -> bool: ...

    def explain(self, text: str, *, weights: str, sums: str) -> object:
        """How a question is answered: something that prints."""


@dataclass(frozen=True, slots=True, eq=False)
class StatementAnswers:
    """Answers of a database under some options."""

    database: AskedDatabase
    options: AnswerOptions

    def plain(self, text: str) -> Result:
        """The answer to one SELECT of sums."""
        return self.database._plain_answer(text, self.options)

    def prefixes(self, text: str) -> Prefixes:
        """Counts of the rows up to every value of the last group of a question."""
        return self.database._prefixes(text, self.options)

    def statements(self, text: str) -> Iterator[Result]:
        """The answer to every statement of a text."""
        for statement in statements_of(text):
            if statement.kind == EXPLAIN:
                explained = self.database.explain(statement.about, weights=self.options.weights, sums=self.options.sums)
                yield Result({"explain": str(explained).splitlines()}, {}, sql=statement.text)
            elif statement.kind == DESCRIBE:
                yield described(self.database.collection, self.database.dimensions, statement.about)
            elif statement.kind == SHOW:
                tables = self.database.collection.tables
                names = [*(table.name for table in tables), *self.database.dimensions]
                yield Result({"name": names}, {}, sql=statement.text)
            else:
                yield self.question(statement.text)

    def _scope(self, select: Any) -> Scope:
        """What the names of a SELECT mean."""
        text, known = str(select.sql(dialect="duckdb")), self.database
        return Scope(text, known.collection, known.dimensions, known.key).with_sources(select)

    def _values(self, question: QuantileQuestion, asked: AskedQuantile) -> Sequence[Any]:
        """What an expression of one attribute may be, in order; nothing where its values are few, or no numbers."""
        scope = self._scope(question.select)
        column = only_attribute(scope, asked.of)
        if column is None or not isinstance(column.domain, Ordinal) or column.domain.size <= MOST_SINGLE_VALUES:
            return ()
        computed = values_of(scope, asked.of, column.domain)
        return () if numbers_of(computed) is None else [each for each in distinct_of(computed)[0] if each is not None]

    def _evaluated(self, node: Any, frame: pa.Table, names: dict[str, str]) -> list[Any]:
        """A function of groups, at every row of an answer."""
        known = self.database
        scope = Scope(str(node.sql(dialect="duckdb")), known.collection, known.dimensions, known.key)
        return list(evaluated(scope, node, frame, names).to_pylist())

    def _with_others(self, text: str, number: int) -> Result:
        """The answer to a question whose intervals hold at once with those of so many others, itself included."""
        confidence = 1 - (1 - self.options.confidence) / number
        return replace(self, options=replace(self.options, confidence=confidence)).question(text)

    def _restated(self, tree: Any, text: str) -> Result:
        """The answer to a question in other words."""
        return replace(self.question(str(tree.sql(dialect="duckdb"))), sql=text)

    def _constants(self, tree: Any, text: str) -> Result:
        """SELECT 1, without tables."""
        scope = Scope(text, self.database.collection, self.database.dimensions, self.database.key)
        items = {item.alias_or_name: item.this if isinstance(item, exp.Alias) else item for item in tree.expressions}
        return Result({name: [constant_of(scope, node)] for name, node in items.items()}, {}, sql=text)

    def _with_values(self, compound: Compound, text: str) -> Compound:
        """Parts whose constants are computed."""
        scope = Scope(text, self.database.collection, self.database.dimensions, self.database.key)

        def values(part: PlainPart) -> PlainPart:
            known = {
                name: constant_of(scope, value) if isinstance(value, exp.Expression) else value
                for name, value in part.constants.items()
            }
            return replace(part, constants=known)

        return replace(compound, parts=tuple(values(part) for part in compound.parts))

    def question(self, text: str) -> Result:
        """The answer to a plain question, or to one that is made of several; a refusal points into its text."""
        try:
            return replace(self._question(text), asked=_asked_names(text))
        except QueryRefused as refused:
            raise refused.within(text) from None

    def _question(self, text: str) -> Result:
        if self.database._is_planned(text, self.options):
            return self.plain(text)
        collection, tree = self.database.collection, read_question(text)
        if is_constant(tree):
            return self._constants(tree, text)
        if (listed := values_alone(tree)) is not None:
            return replace(self._restated(listed, text), answers={})
        if (counted := histogram_counts(tree)) is not None:
            return self._restated(counted, text)
        if (united := united_sums(tree)) is not None:
            return self._restated(united, text)
        if (chosen := with_chosen_groups(tree, self.question)) is not None:
            return with_notes(self._restated(chosen[0], text), chosen[1])
        if (summed := summed_groups(tree)) is not None:
            together = replace(self, options=replace(self.options, simultaneous=True))
            return summed.answer(self.question, together.question, text)
        if (joined := joined_answers(tree)) is not None:
            return joined.answer(self._with_others, self.options.confidence, text)
        if (made := computed_columns(tree)) is not None:
            return replace(made.answer(self.question(str(made.asked.sql(dialect="duckdb"))), self._evaluated), sql=text)
        key, dimensions = self.database.key, self.database.dimensions
        compound = compound_of(tree, lambda part: flattened(text, part, collection, key, dimensions))
        compound = self._with_values(compound, text)
        compound = computed_groups(compound, self._scope, lambda asked: list(self.plain(asked)))
        first = compound.parts[0].select
        if len(compound.parts) == 1 and (calculated := combined_quantiles(first)) is not None:
            options = self.options
            return calculated.answer(self._with_others, options.confidence, simultaneous=options.simultaneous)
        if len(compound.parts) == 1 and (asked := quantile_question(first)) is not None:
            return quantile_answer(asked, self.plain, self.prefixes, self._values, self.options)
        if compound.is_plain and is_plain(first):
            return self.plain(text)
        if self.options.simultaneous and len(compound.parts) > 1:
            raise QueryRefused("intervals of several parts do not hold at once", "Ask the parts one by one.")
        return compound_answer(compound, self.plain, self.question, text)


@functools.lru_cache(maxsize=256)
def _asked_names(text: str) -> tuple[str, ...]:
    """The columns that a question asks for, in its order, where it names them."""
    return tuple(item.alias_or_name for item in read_question(text).selects)
