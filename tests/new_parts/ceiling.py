"""A new SQL function: CEIL of an attribute, for conditions and groups."""

from deniable.queries.parsing.functions import DomainFunction

CEILING = DomainFunction(lambda values: -(-values).floor())
