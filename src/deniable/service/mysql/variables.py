"""Session variables: MySQL's own, and @@deniable_… for how questions are answered.

SET deniable_confidence = 0.9;       the options of `Database.sql`, each under its name
SET deniable_error_columns = 0;      n alone, without n_stderr, n_low and n_high
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mysql_mimic.errors import ErrorCode, MysqlError
from mysql_mimic.variables import SYSTEM_VARIABLES, GlobalVariables, SessionVariables

from deniable import __version__
from deniable.errors import InvalidParameter
from deniable.queries.answers.answer_options import AnswerOptions

PREFIX = "deniable_"
ERROR_COLUMNS_VARIABLE = f"{PREFIX}error_columns"
MOST_OTHERS = 200
"""How many variables that mean nothing here a connection may set."""


def flag(value: Any) -> bool:
    """A variable that is on or off.

    >>> flag(0), flag("OFF"), flag(True)
    (False, False, True)
    """
    text = str(value).strip().lower()
    if text not in ("0", "1", "on", "off", "true", "false"):
        raise MysqlError("This variable is ON or OFF.", ErrorCode.WRONG_VALUE_FOR_VAR)
    return text in ("1", "on", "true")


_OPTION_DEFAULTS = {field.name: field.default for field in fields(AnswerOptions)}
_KINDS: dict[type, Any] = {bool: flag, float: float, str: str, type(None): str}
_VARIABLES: dict[str, Any] = {
    **SYSTEM_VARIABLES,
    "version": (str, f"8.0.36-deniable-{__version__}", False),
    "version_comment": (str, "deniable: answers with error bars, from randomised reports", False),
    "sql_mode": (str, "ONLY_FULL_GROUP_BY", True),
    "lower_case_table_names": (int, 2, False),
    "tx_isolation": (str, "REPEATABLE-READ", True),
    "tx_read_only": (flag, True, True),
    "transaction_read_only": (flag, True, True),
    "have_ssl": (str, "YES", False),
    "default_storage_engine": (str, "deniable", False),
    ERROR_COLUMNS_VARIABLE: (flag, True, True),
    **{f"{PREFIX}{name}": (_KINDS[type(default)], default, True) for name, default in _OPTION_DEFAULTS.items()},
}


class AskingVariables(SessionVariables):  # type: ignore[misc] # an extra
    """The variables of one connection. Drivers set many that mean nothing here: those are kept and change nothing."""

    def __init__(self) -> None:
        super().__init__(GlobalVariables(_VARIABLES))
        self._values: dict[str, Any] = {}

    def get_schema(self, name: str) -> Any:
        """What a variable is: its type, its default, and whether it may be set."""
        if name in _VARIABLES or name.startswith(PREFIX):
            return super().get_schema(name)
        return (str, None, len(self._values) < MOST_OTHERS)

    def set(self, name: str, value: Any, force: bool = False) -> None:
        """Set a variable; what it does to answers is checked at once."""
        before = dict(self._values)
        try:
            super().set(name, value, force)
            self.options()
        except (InvalidParameter, ValueError, TypeError) as problem:
            self._values = before
            words = str(problem) if isinstance(problem, InvalidParameter) else "The variable has another type."
            raise MysqlError(words, ErrorCode.WRONG_VALUE_FOR_VAR) from None

    def options(self) -> AnswerOptions:
        """How questions are answered."""
        chosen = {name: self.get_variable(f"{PREFIX}{name}") for name in _OPTION_DEFAULTS}
        return AnswerOptions(**{**chosen, "postprocess": chosen["postprocess"] or None})

    @property
    def error_columns(self) -> bool:
        """Whether answers come with their errors."""
        return bool(self.get_variable(ERROR_COLUMNS_VARIABLE))
