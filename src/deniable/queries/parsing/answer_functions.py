"""Functions of answers: ROUND, CAST, ABS, GREATEST, LEAST, SQRT, EXP, LN, COALESCE, NULLIF, %, // and powers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from sqlglot import exp

from deniable.queries.parsing.constants import literal
from deniable.queries.parsing.scope import Node, Scope
from deniable.queries.question.formula import Applied, Binary, Formula, Number, Root

_TYPES = exp.DataType.Type
_WHOLE_TYPES = {_TYPES.INT, _TYPES.BIGINT, _TYPES.SMALLINT, _TYPES.TINYINT, _TYPES.INT128}
_REAL_TYPES = {_TYPES.DOUBLE, _TYPES.FLOAT}
_MOST_DECIMALS = 12


def applied(scope: Scope, node: Node, formula: Callable[[Node], Formula]) -> Formula | None:
    """A function of answers as a formula; None if it is no such function."""
    if isinstance(node, exp.Round):
        decimals = node.args.get("decimals")
        return Applied("round", formula(node.this), _decimals(scope, decimals))
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return _cast(scope, node, formula)
    if isinstance(node, exp.Abs):
        return Applied("abs", formula(node.this))
    if isinstance(node, exp.Sqrt):
        return Root(formula(node.this))
    if isinstance(node, exp.Floor):
        return Applied("floor", formula(node.this))
    if isinstance(node, exp.Ceil):
        return Applied("ceil", formula(node.this))
    if isinstance(node, exp.Trunc) and node.args.get("decimals") is None:
        return Applied("trunc", formula(node.this))
    if isinstance(node, exp.Exp):
        return Applied("exp", formula(node.this))
    if isinstance(node, exp.Ln):
        return Applied("ln", formula(node.this))
    if isinstance(node, exp.Log):
        return _logarithm(scope, node, formula)
    if isinstance(node, exp.IntDiv):
        return Applied("floor", Binary("/", formula(node.this), formula(node.expression)))
    if isinstance(node, exp.Mod):
        return _rest(scope, node, formula)
    if isinstance(node, exp.Pow):
        return _power(scope, node, formula)
    if isinstance(node, (exp.Greatest, exp.Least)):
        return _extreme(scope, node, formula)
    if isinstance(node, (exp.Coalesce, exp.Nullif)) and node.find(exp.AggFunc):
        # An answer is never missing: where SQL has no rows to divide by, it is unclear.
        return formula(node.this)
    return None


def _decimals(scope: Scope, node: Node) -> float:
    if node is None:
        return 0.0
    value = literal(scope, node)
    if not isinstance(value, int) or not -_MOST_DECIMALS <= value <= _MOST_DECIMALS:
        raise scope.refusal(node, "ROUND takes a number of decimals", f"Use up to {_MOST_DECIMALS}.")
    return float(value)


def _cast(scope: Scope, node: Any, formula: Callable[[Node], Formula]) -> Formula:
    kind = node.to.this
    if kind in _REAL_TYPES:
        return formula(node.this)
    if kind in _WHOLE_TYPES:
        return Applied("round", formula(node.this), 0.0)
    if kind == _TYPES.DECIMAL:
        parameters = [float(part.this.this) for part in node.to.expressions]
        scale = parameters[1] if len(parameters) > 1 else 0.0 if parameters else 3.0  # DuckDB's DECIMAL is (18, 3)
        return Applied("round", formula(node.this), scale)
    raise scope.refusal(node, "an answer is a number", "Cast it to DOUBLE, DECIMAL or INTEGER.")


def _power(scope: Scope, node: Any, formula: Callable[[Node], Formula]) -> Formula:
    exponent = literal(scope, node.expression)
    if exponent == 2:
        inner = formula(node.this)
        return Binary("*", inner, inner)
    if float(exponent) == 0.5:
        return Root(formula(node.this))
    raise scope.refusal(node, "answers can be raised to 2 and 0.5", "Multiply them.")


def _logarithm(scope: Scope, node: Any, formula: Callable[[Node], Formula]) -> Formula:
    """LOG10, LOG2, LOG(base, x), and LOG(x) to the base 10."""
    base, inner = (Number(10.0), node.this) if node.expression is None else (formula(node.this), node.expression)
    if not isinstance(base, Number) or base.value <= 1:
        raise scope.refusal(node, "the base of a logarithm is a number above 1", "Write LOG10, LOG2 or LN.")
    return Binary("/", Applied("ln", formula(inner)), Number(math.log(base.value)))


def _rest(scope: Scope, node: Any, formula: Callable[[Node], Formula]) -> Formula:
    """What the division of an answer by a constant leaves over."""
    divisor = formula(node.expression)
    if not isinstance(divisor, Number) or not divisor.value:
        raise scope.refusal(node, "% divides an answer by a number", "Write a number other than 0 after %.")
    return Applied("mod", formula(node.this), divisor.value)


def _extreme(scope: Scope, node: Any, formula: Callable[[Node], Formula]) -> Formula:
    """The larger or smaller of an answer and constants."""
    name = "greatest" if isinstance(node, exp.Greatest) else "least"
    parts = [formula(part) for part in (node.this, *node.expressions)]
    constants = [part.value for part in parts if isinstance(part, Number)]
    answers = [part for part in parts if not isinstance(part, Number)]
    if len(answers) != 1 or not constants:
        problem = f"{name.upper()} of several answers is decided by noise"
        raise scope.refusal(node, problem, "Compare an answer with a constant.")
    return Applied(name, answers[0], max(constants) if name == "greatest" else min(constants))
