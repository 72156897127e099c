"""What may be asked of a text attribute: whether it is a word, one of several, or begins with something."""

from __future__ import annotations

from sqlglot import exp

from deniable.queries.parsing.scope import Node, Scope
from deniable.queries.question.listed_words import REST_OF_WORDS, ListedWords

_ALLOWED = {
    exp.Paren, exp.Not, exp.And, exp.Or, exp.EQ, exp.NEQ, exp.In, exp.Like, exp.StartsWith, exp.Column, exp.Identifier,
    exp.Literal, exp.Null, exp.Is, exp.Case, exp.If, exp.Boolean,
}  # fmt: skip
TOO_FINE = (
    "a text is known by its listed words and prefixes only",
    "Use =, <>, IN, LIKE 'prefix%' and starts_with(word, 'prefix').",
)


def check_words(scope: Scope, node: Node, domain: ListedWords) -> None:
    """Refuse functions that would have to be known at words that nobody listed."""
    for part in node.walk():
        if type(part) not in _ALLOWED:
            raise scope.refusal(part, *TOO_FINE)
        if not isinstance(part, (exp.Like, exp.StartsWith)):
            continue
        prefix = prefix_asked(part)
        if prefix is None or not isinstance(part.this, exp.Column):
            raise scope.refusal(part, *TOO_FINE)
        if prefix and domain.text.holds(prefix) and prefix + REST_OF_WORDS not in domain.values:
            raise scope.refusal(part, *TOO_FINE)


def prefix_asked(node: Node) -> str | None:
    """The prefix of LIKE 'prefix%' or starts_with; None for any other pattern."""
    pattern = node.expression
    if not isinstance(pattern, exp.Literal) or not pattern.is_string:
        return None
    if isinstance(node, exp.StartsWith):
        return str(pattern.this)
    prefix, wildcard = str(pattern.this)[:-1], str(pattern.this)[-1:]
    return prefix if wildcard == "%" and not set("%_\\") & set(prefix) else None
