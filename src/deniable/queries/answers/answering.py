"""A text → answers: its statements one by one, and questions that are made of several plain ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.compound_answers import Ask, compound_answer, is_plain
from deniable.queries.answers.descriptions import described
from deniable.queries.answers.quantile_answers import Prefixes, quantile_answer
from deniable.queries.answers.result import Result
from deniable.queries.parsing.compound_questions import compound_of
from deniable.queries.parsing.derived_tables import flattened
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.grammar import read_question
from deniable.queries.parsing.quantile_questions import quantile_question
from deniable.queries.parsing.statements import DESCRIBE, EXPLAIN, SHOW, statements_of
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True, eq=False)
class StatementAnswers:
    """What a database can do for a question."""

    collection: Specification
    dimensions: Mapping[str, Dimension]
    options: AnswerOptions
    plain: Ask
    """Answers one SELECT of sums."""
    prefixes: Callable[[str], Prefixes]
    """Counts the rows up to every value of the last group of a question."""
    explained: Callable[[str], str]
    seen: Callable[[str], bool]
    """Whether a text is a plain question that was asked before."""

    def statements(self, text: str) -> Iterator[Result]:
        """The answer to every statement of a text."""
        for statement in statements_of(text):
            if statement.kind == EXPLAIN:
                yield Result({"explain": self.explained(statement.about).splitlines()}, {}, sql=statement.text)
            elif statement.kind == DESCRIBE:
                yield described(self.collection, self.dimensions, statement.about)
            elif statement.kind == SHOW:
                names = [*(table.name for table in self.collection.tables), *self.dimensions]
                yield Result({"name": names}, {}, sql=statement.text)
            else:
                yield self.question(statement.text)

    def question(self, text: str) -> Result:
        """The answer to a plain question, or to one that is made of several."""
        if self.seen(text):
            return self.plain(text)
        compound = compound_of(read_question(text), lambda part: flattened(text, part, self.collection, USER_COLUMN))
        first = compound.parts[0].select
        if len(compound.parts) == 1 and (asked := quantile_question(first)) is not None:
            return quantile_answer(asked, self.plain, self.prefixes, self.options)
        if compound.is_plain and is_plain(first):
            return self.plain(text)
        if self.options.simultaneous and len(compound.parts) > 1:
            raise QueryRefused("intervals of several parts do not hold at once", "Ask the parts one by one.")
        return compound_answer(compound, self.plain, text)
