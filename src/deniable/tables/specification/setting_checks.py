"""Checks of a specification's settings: what each may be, and what is said if it is not. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.limits import MOST_TABLES
from deniable.mechanisms.oracles import ORACLE_CHOICES
from deniable.tables.designs import DESIGNS, GRID, PRODUCTS
from deniable.tables.designs.words import has_words
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.grid_views import GridView, checked_grids
from deniable.tables.schema.names import repeated
from deniable.tables.schema.report_format import COIN_MODES, SLOT_NUMBERS, VIEW_NUMBERS
from deniable.tables.schema.rounds import ROUND_COLUMN, Rounds
from deniable.wording import listed

if TYPE_CHECKING:
    from deniable.tables.specification.specification import Specification

LARGEST_DESIGN_FANOUT = 2**16
LARGEST_SHARE = 1e300


def checked_rounds(rounds: Any, name: str | None, tables: tuple[Table, ...]) -> Rounds | None:
    """Rounds, if the collection has a name and no table has a column of that name."""
    if rounds is None:
        return None
    if not isinstance(rounds, Rounds):
        raise InvalidParameter("rounds", "must be dn.Rounds(...)", "Write rounds=dn.Rounds(52).")
    if texts := [table.name for table in tables if has_words(table)]:
        problem = f"are for lists and numbers, and table {texts[0]!r} has a text"
        raise InvalidParameter("rounds", problem, "Leave them out, or collect the text without rounds.")
    if name is None:
        raise InvalidParameter("name", "is missing", 'A collection with rounds has a name: name="shop".')
    for table in tables:
        if any(attribute.casefold() == ROUND_COLUMN for attribute in table.attributes):
            raise InvalidParameter(f"table {table.name!r}: attribute 'round'", "is the column of rounds", "Rename it.")
    return rounds


def checked_names(tables: tuple[Any, ...]) -> list[str]:
    """The names of the tables, each once."""
    if not tables or not all(isinstance(table, Table) for table in tables):
        raise InvalidParameter("tables", "must be one Table or more", "Pass dn.Table(...) values.")
    if len(tables) > MOST_TABLES:
        raise InvalidParameter("tables", f"are more than {MOST_TABLES:,}", "Divide them into collections.")
    names = [table.name for table in tables]
    if twice := repeated(names):
        repair = "Rename one of the two; case does not count."
        raise InvalidParameter(f"table {min(twice, key=names.index)!r}", "is named twice", repair)
    return names


def check_settings(design: Any, fanout: Any, oracle: Any, coins: Any) -> None:
    """Refuse an unknown design, oracle or kind of coins, and an impossible fan-out."""
    if not isinstance(design, str) or design not in (*DESIGNS, GRID):
        raise InvalidParameter("design", "is unknown", f"Use one of {', '.join(sorted((*DESIGNS, GRID)))}.")
    problem = f"must be an integer from 2 to {LARGEST_DESIGN_FANOUT}"
    check_integer("fanout", fanout, 2, LARGEST_DESIGN_FANOUT, problem=problem, repair="Use 5.")
    if not isinstance(oracle, str) or oracle not in ORACLE_CHOICES:
        raise InvalidParameter("oracle", "is unknown", f"Use one of {', '.join(ORACLE_CHOICES)}.")
    if coins not in COIN_MODES:
        raise InvalidParameter("coins", "are of an unknown kind", f"Use one of {', '.join(COIN_MODES)}.")


def checked_shares(shares: Any, names: list[str]) -> dict[str, float] | None:
    """The share of ε that each table gets, in the order of the tables; None if all reports get the same."""
    if shares is None:
        return None
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise InvalidParameter("shares", "must name every table once", f"Name {listed(names)}.")
    for name, share in shares.items():
        problem, repair = "must be a positive number", "Use 1 for an even share."
        check_number(f"shares of {name!r}", share, problem, repair, above=0, largest=LARGEST_SHARE)
    return {name: float(shares[name]) for name in names}


def chosen_grids(tables: tuple[Table, ...], design: str, grids: Any) -> dict[str, tuple[GridView, ...]] | None:
    """The views of each table in the design "grid"; None in other designs."""
    texts = [table.name for table in tables if has_words(table)]
    if design == GRID and texts:
        problem = "has a text, whose views are prefixes and no cells of a grid"
        raise InvalidParameter(f"table {texts[0]!r}", problem, "Use another design; a text is collected alike in all.")
    if design == GRID:
        return checked_grids(tables, grids)
    if grids is not None:
        raise InvalidParameter("grids", "are for the design grid", 'Use design="grid", or leave them out.')
    return None


def check_attributes(table: Table, design: str) -> None:
    """Refuse more attributes than the design can combine, before their views are counted: each has two levels."""
    if design in PRODUCTS and len(table.private) >= VIEW_NUMBERS.bit_length():
        raise too_many_views(table.name, design)


def check_reports(specification: Specification, name: str, views: int) -> None:
    """Refuse a table whose views or reports cannot be numbered, or whose ε per report is too small."""
    if views > VIEW_NUMBERS:
        raise too_many_views(name, specification.design)
    if specification.reports_per_user(name) > SLOT_NUMBERS:
        raise InvalidParameter(f"table {name!r}: tau", f"gives over {SLOT_NUMBERS:,} reports per user", "Lower tau.")
    try:
        check_epsilon(specification.epsilon_per_report(name))
    except InvalidParameter:
        where = f"epsilon per report of table {name!r}"
        raise InvalidParameter(where, "is too small", "Raise epsilon or its share, or lower tau.") from None


def too_many_views(name: str, design: str) -> InvalidParameter:
    """The error for a table whose views cannot be numbered."""
    problem = f"has over 2^32 views in design {design!r}, more than 32 bits can number"
    repair = "Use fewer attributes, a larger fanout, or the designs sc or mg."
    return InvalidParameter(f"table {name!r}", problem, repair)
