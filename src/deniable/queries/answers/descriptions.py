"""What there is to ask about: the columns of a table as an answer, and all tables for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deniable.errors import QueryRefused
from deniable.notebook import html_table
from deniable.queries.answers.catalogue import kind_of
from deniable.queries.answers.result import Result
from deniable.queries.parsing.dimensions import Dimension
from deniable.simulation import NOTE
from deniable.tables.schema.attributes import Private
from deniable.tables.specification.specification import Specification
from deniable.wording import counted, listed


def described(collection: Specification, dimensions: Mapping[str, Dimension], name: str) -> Result:
    """The columns of a table or a dimension: what they are called, of which type and which kind they are."""
    columns: list[tuple[str, str, str]] = []
    for table in collection.tables:
        if table.name.casefold() == name.casefold():
            columns = [(attribute, *_kind(meaning)) for attribute, meaning in table.attributes.items()]
            columns.insert(0, ("uid", "", "user id, for joins"))
    for dimension, described_by in dimensions.items():
        if dimension.casefold() == name.casefold():
            columns = [(column, "", "dimension") for column in described_by.columns]
    if not columns:
        known = listed([*(table.name for table in collection.tables), *dimensions])
        raise QueryRefused(f"there is no table {name!r}", f"There are {known}.")
    names, types, kinds = (list(each) for each in zip(*columns, strict=True))
    return Result({"column_name": names, "column_type": types, "kind": kinds}, {}, sql=f"DESCRIBE {name}")


def kept_in_words(kept: Mapping[str, tuple[int, int]]) -> str:
    """How many reports of each table were kept and refused."""
    refusals = {name: f" ({refused:,} refused)" if refused else "" for name, (_, refused) in kept.items()}
    return ", ".join(f"{name}: {counted(reports, 'report')}{refusals[name]}" for name, (reports, _) in kept.items())


def tables_page(
    collection: Specification, kept: Mapping[str, tuple[int, int]], dimensions: Sequence[str], *, simulation: bool
) -> str:
    """The tables of a collection with how many reports of each were kept and refused, as HTML."""
    rows = (
        (name, f"{reports:,}", f"{refused:,}", ", ".join(collection[name].private), ", ".join(collection[name].public))
        for name, (reports, refused) in kept.items()
    )
    return html_table(
        ("table", "reports", "refused", "private", "public"),
        rows,
        title=f"Reports under ε = {collection.epsilon:g} per user",
        notes=[*([f"dimensions: {', '.join(dimensions)}"] if dimensions else []), *[NOTE] * simulation],
    )


def _kind(meaning: object) -> tuple[str, str]:
    """As `kind_of`; what a public attribute's type is, the reports show."""
    return kind_of(meaning) if isinstance(meaning, Private) else ("", "public")
