"""What a service collects: attributes with public domains, in tables.

A domain is public knowledge, written down before any data is seen. A domain taken from the data would reveal something
about the people in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from numbers import Integral
from typing import Any

from deniable.checks import check_integer, is_integer
from deniable.errors import InvalidParameter
from deniable.limits import LONGEST_CATEGORY, MOST_ATTRIBUTES, MOST_CATEGORIES
from deniable.notebook import html_table
from deniable.tables.schema.names import check_name as check_name
from deniable.tables.schema.names import is_text
from deniable.tables.schema.names import repeated as repeated
from deniable.tables.schema.ordinal import Ordinal as Ordinal
from deniable.tables.schema.placing import DROP, MISSING, OUTSIDE, OWN, WRONG_TYPE, Unplaceable
from deniable.tables.schema.report_format import REPORT_COLUMNS, USER_COLUMN
from deniable.tables.schema.rule_checks import checked_category_rules
from deniable.tables.schema.scalars import written
from deniable.tables.schema.text import Text as Text
from deniable.wording import counted

LARGEST_TAU = 2**15
RESERVED = frozenset({USER_COLUMN})
"""What no attribute can be called: the column of user ids joins the tables."""
PUBLIC_PREFIX = "public:"
OWNERSHIP = ("owner", "key")
"""Fields of a table that are texts; an attribute of such a name is none."""
ARGUMENTS = frozenset(
    {"key", "out", "everyone", "source", "simulation", "engine", "spill", "ledger", "round", "memory", "max_rejected"}
)


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Categorical:
    """One of a public list of values: texts, integers or truth values.

    Rules for other values: `map` has texts that stand for values of the list, `other` is the value for all that are
    not listed, and `missing` the value that stands for none, or "own" for a cell of its own after all values (unless
    the list has the text "own"). Without rules such rows are dropped.

    >>> Categorical("sports", "books").encode("books"), Categorical(range(3)).size
    (1, 3)
    """

    values: tuple[Any, ...]
    _codes: dict[Any, int] = field(repr=False)
    map: Mapping[str, str]
    other: Any
    missing: Any

    def __init__(self, *values: Any, **rules: Any) -> None:
        if len(values) == 1 and isinstance(values[0], Iterable) and not isinstance(values[0], str):
            values = tuple(islice(values[0], MOST_CATEGORIES + 1))
        if len(values) > MOST_CATEGORIES:
            raise InvalidParameter("values", f"are more than {MOST_CATEGORIES:,}", "Join rare ones, or use Ordinal.")
        kinds = {type(value) for value in values}
        if len(kinds) > 1 or not kinds <= {str, int, bool}:
            raise InvalidParameter("values", "must be all texts, all integers or all truth values", "Use one type.")
        if len(set(values)) != len(values):
            raise InvalidParameter("values", "list something twice", "Name every value once.")
        if len(values) < 2:
            raise InvalidParameter("values", "must be at least two", "A constant needs no report: leave it out.")
        for value in values:
            if isinstance(value, str) and len(value) > LONGEST_CATEGORY:
                raise InvalidParameter("values", f"contain one over {LONGEST_CATEGORY:,} characters", "Shorten it.")
            if (isinstance(value, str) and not is_text(value)) or (isinstance(value, int) and abs(value) >= 2**63):
                problem = "contain an unpaired surrogate or a number beyond 64 bits"
                raise InvalidParameter("values", problem, "Replace it.")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_codes", {value: code for code, value in enumerate(values)})
        for name, value in checked_category_rules(values, rules).items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Categorical) and _same(self, other)

    def __hash__(self) -> int:
        return hash(self.values)

    @property
    def size(self) -> int:
        """How many cells there are: values, and one for missing values where they have their own."""
        return len(self.values) + (self.missing_position is not None)

    @property
    def known_size(self) -> int:
        """How many values there are."""
        return len(self.values)

    @property
    def missing_position(self) -> int | None:
        """The position of missing values, where they have a cell of their own."""
        return len(self.values) if self.missing == OWN and OWN not in self._codes else None

    @property
    def aggregatable(self) -> bool:
        """Whether designs collect rounded values of it for sums."""
        return False

    def encode(self, value: Any) -> int:
        """The position of a value in the list, counted from 0."""
        if value is None:
            if self.missing is None:
                raise Unplaceable(MISSING)
            return self._codes.get(self.missing, len(self.values))
        if not isinstance(value, (int, str)) and isinstance(value, Integral):
            value = int(value)
        if type(value) is not type(self.values[0]):
            raise Unplaceable(WRONG_TYPE)
        value = self.map.get(value, value) if isinstance(value, str) else value
        if value not in self._codes:
            if self.other is None:
                raise Unplaceable(OUTSIDE)
            value = self.other
        return self._codes[value]

    def decode(self, code: int) -> Any:
        """The value at a position of the list, or None for what is missing."""
        return None if code == self.missing_position else self.values[code]

    def to_dict(self) -> dict[str, Any]:
        """The canonical form."""
        rules = {"map": dict(sorted(self.map.items())), "other": self.other, "missing": self.missing}
        given = {rule: value for rule, value in rules.items() if value is not None and value != {}}
        return {"kind": "categorical", "values": list(self.values), **given}


@dataclass(frozen=True, slots=True)
class Public:
    """An attribute that everybody may know: it is sent in clear, to filter and to group by.

    In a table with many rows per user it belongs to the user, not to the row: a value that came with the rows would
    show which rows are dummies.

    >>> Table("users", age=Ordinal(1, 95), city=Public()).public
    ('city',)
    """

    def to_dict(self) -> dict[str, Any]:
        """The canonical form."""
        return {"kind": "public"}


Enumerable = Ordinal | Categorical
"""Domains whose values can be listed: what questions are about. Of a text, they list the words they are about."""
Private = Enumerable | Text
Attribute = Private | Public


@dataclass(frozen=True, slots=True, init=False, eq=False)
class Table:
    """What one service collects: one row per user, or up to `many`.

    For a table with `many`, every user sends exactly `tau` reports, whether she has no rows, one or hundreds.

    A table may be about something other than users: with the texts `owner` and `key` its rows are reported by others,
    one row for each id in the column `key`, under an ε of their own (`owners` of the collection). Tables of users may
    have a private attribute with such ids, and are joined through it.

    >>> Table("orders", many=10, amount=Ordinal(0, 500)).private
    ('amount',)
    >>> Table("products", owner="shop", key="pid", price=Ordinal(0, 99)).key
    'pid'
    """

    name: str
    attributes: Mapping[str, Attribute]
    many: int | None
    tau: int
    owner: str | None
    """Who reports the rows; None for the users themselves."""
    key: str | None
    """The column of ids, where rows are not about users."""

    def __init__(self, name: str, /, many: int | None = None, tau: int = 1, **columns: Attribute | str) -> None:
        check_name("table", name)
        owner, key, attributes = _ownership(columns)
        if name in ARGUMENTS:
            raise InvalidParameter(f"table {name!r}", "is named like an argument of perturb", "Rename it.")
        where = f"table {name!r}"
        if len(attributes) > MOST_ATTRIBUTES:
            raise InvalidParameter(where, f"has more than {MOST_ATTRIBUTES:,} attributes", "Divide it into tables.")
        twice = repeated(attributes)
        for attribute, meaning in attributes.items():
            check_name(f"{where}: attribute", attribute)
            if attribute.casefold() in RESERVED:
                raise InvalidParameter(f"{where}: attribute {attribute!r}", "is the column of user ids", "Rename it.")
            if attribute in twice:
                problem = "is named twice, apart from case"
                raise InvalidParameter(f"{where}: attribute {attribute!r}", problem, "Rename it.")
            if not isinstance(meaning, Attribute):
                raise InvalidParameter(
                    f"{where}: attribute {attribute!r}",
                    "is not an attribute",
                    "Use Ordinal, Categorical, Text or Public.",
                )
        if not any(isinstance(meaning, Private) for meaning in attributes.values()):
            raise InvalidParameter(where, "collects nothing private", "Add an Ordinal, Categorical or Text attribute.")
        if many is None and (tau != 1 or not is_integer(tau)):  # True and 1.0 would be written into the specification
            raise InvalidParameter(f"{where}: tau", "is for tables with many rows per user", "Set many, or drop tau.")
        if many is not None:
            problem, repair = f"must be 1 to {LARGEST_TAU}", "Name the most rows of a user."
            check_integer(f"{where}: many", many, 1, LARGEST_TAU, problem=problem, repair=repair)
            problem, repair = "must be 1 to many", "Lower tau, or raise many."
            check_integer(f"{where}: tau", tau, 1, many, problem=problem, repair=repair)
        _check_texts(where, many, attributes)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "attributes", dict(attributes))
        object.__setattr__(self, "many", many)
        object.__setattr__(self, "tau", tau)
        _check_ownership(where, owner, key, many, attributes)
        object.__setattr__(self, "owner", owner)
        object.__setattr__(self, "key", key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and _same(self, other)

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.attributes), self.many, self.tau))

    @property
    def private(self) -> tuple[str, ...]:
        """Names of the attributes that are randomised."""
        return tuple(name for name, meaning in self.attributes.items() if isinstance(meaning, Private))

    @property
    def public(self) -> tuple[str, ...]:
        """Names of the attributes that are sent in clear."""
        return tuple(name for name, meaning in self.attributes.items() if isinstance(meaning, Public))

    @staticmethod
    def column(attribute: str) -> str:
        """The column of reports that holds a public attribute: its name, prefixed if every report has such a column.

        >>> Table.column("city"), Table.column("view")
        ('city', 'public:view')
        """
        return PUBLIC_PREFIX + attribute if attribute.casefold() in REPORT_COLUMNS else attribute

    @property
    def public_columns(self) -> tuple[str, ...]:
        """The columns of reports that hold the public attributes."""
        return tuple(self.column(attribute) for attribute in self.public)

    @property
    def domains(self) -> tuple[Private, ...]:
        """The domains of the private attributes."""
        return tuple(meaning for meaning in self.attributes.values() if isinstance(meaning, Private))

    def _repr_html_(self) -> str:
        """Attributes and their public domains, for notebooks."""
        rows = ((name, *_domain_shown(meaning)) for name, meaning in self.attributes.items())
        users = (
            f"one row per {self.key}, reported by {self.owner}"
            if self.key is not None
            else "one row per user"
            if self.many is None
            else f"up to {counted(self.many, 'row')} per user, tau = {self.tau}"
        )
        return html_table(("attribute", "kind", "domain"), rows, title=f"{self.name}: {users}")

    def to_dict(self) -> dict[str, Any]:
        """The canonical form; attributes keep their order, because reports number cells by it."""
        owned = {} if self.owner is None else {"owner": self.owner, "key": self.key}
        return {
            "name": self.name,
            **owned,
            "many": self.many,
            "tau": self.tau,
            "attributes": [{"name": name, **meaning.to_dict()} for name, meaning in self.attributes.items()],
        }


def _ownership(columns: Mapping[str, Any]) -> tuple[str | None, str | None, dict[str, Any]]:
    """Owner and key of a table, if they are given as texts, and its attributes, which may have these names too."""
    named = {name: columns[name] for name in OWNERSHIP if isinstance(columns.get(name), str)}
    attributes = {name: meaning for name, meaning in columns.items() if name not in named}
    return named.get("owner"), named.get("key"), attributes


def _check_ownership(
    where: str, owner: str | None, key: str | None, many: int | None, attributes: Mapping[str, Any]
) -> None:
    """Refuse half of an ownership, and a table of others with more than one row for each id."""
    if owner is None and key is None:
        return
    if owner is None or key is None:
        raise InvalidParameter(where, "has an owner or a key, and not both", "Name both, or leave them out.")
    check_name(f"{where}: owner", owner)
    check_name(f"{where}: key", key)
    if many is not None:
        problem = "is for tables of users: of others, each id has one row and one report"
        raise InvalidParameter(f"{where}: many", problem, "Leave it out, or leave out owner and key.")
    if key.casefold() in {name.casefold() for name in attributes}:
        problem = "is the column of ids, which are sent in clear, and an attribute too"
        raise InvalidParameter(f"{where}: key", problem, "Leave the attribute out.")


def _check_texts(where: str, many: int | None, attributes: Mapping[str, Any]) -> None:
    """Refuse a text next to other private attributes, and one with many rows per user."""
    texts = [name for name, meaning in attributes.items() if isinstance(meaning, Text)]
    if texts and sum(isinstance(meaning, Private) for meaning in attributes.values()) > 1:
        problem = "is a text, whose levels would multiply with those of the table's other private attributes"
        raise InvalidParameter(
            f"{where}: attribute {texts[0]!r}", problem, "Give it a table of its own; questions join the two."
        )
    if texts and many is not None:
        problem = "is for lists and numbers: of a text, each user reports one word"
        raise InvalidParameter(f"{where}: many", problem, "Leave it out, and choose a word on the device.")


def without_rules(domain: Private) -> Private:
    """The values of a domain at the same positions, and nothing else."""
    if isinstance(domain, Categorical):
        return Categorical(domain.values)
    if isinstance(domain, Text):
        return domain
    return replace(domain, outside=DROP, round=False, missing=None)


def _domain_shown(meaning: Attribute) -> tuple[str, str]:
    """The kind of an attribute, and its domain in a few words."""
    if isinstance(meaning, Public):
        return "public", "sent in clear"
    if isinstance(meaning, Ordinal):
        return "ordinal", f"{written(meaning.low)} to {written(meaning.high)}, step {written(meaning.step)}"
    if isinstance(meaning, Text):
        letters = "" if meaning.alphabet is None else f" of {counted(len(meaning.alphabet), 'character')}"
        return "text", f"words of up to {counted(meaning.max_length, 'byte')}{letters}"
    first = ", ".join(map(str, meaning.values[:5]))
    return "categorical", first if meaning.size <= 5 else f"{first}, … ({meaning.size:,} values)"


def _same(first: Any, second: Any) -> bool:
    """Whether two parts of a specification have the same canonical form: 1 is not true, and order counts."""
    return json.dumps(first.to_dict()) == json.dumps(second.to_dict())
