"""How large input from strangers may be: specifications, SQL, names.

Each limit is checked before any work that grows with the input, so a hostile file or text costs no time and no memory.
`docs/reference/limits.md` lists all limits, including those that other files define next to what they bound.
"""

from __future__ import annotations

LONGEST_NAME = 200
"""Characters of the name of a table, an attribute, or an answer."""
LONGEST_CATEGORY = 1_000
"""Characters of a category."""
MOST_TABLES = 1_000
"""Of a collection."""
MOST_ATTRIBUTES = 1_000
"""Of a table, private and public ones together."""
MOST_CATEGORIES = 1_000_000
"""Of an attribute."""
MOST_GRID_VIEWS = 5_000
"""Of a table's grid."""
LARGEST_JSON, LARGEST_TOML = 2**24, 2**20
"""Bytes of a specification file. JSON is for programs and read fast, TOML for people."""
LONGEST_KEY = 16
"""Parts of a dotted key in TOML: the parser's time grows with their square."""
LONGEST_TEXT = 1_000
"""Bytes of a user id or a public text in a report."""

MOST_STREAM_KEYS = 100_000
"""Of a live stream that requests write to, unless a setting says otherwise: every key stays for ever."""

LONGEST_SQL = 100_000
"""Characters of a question."""
MOST_TOKENS = 10_000
"""Words, numbers and signs of a question."""
DEEPEST_BRACKETS = 32
"""Brackets inside brackets of a question."""
MOST_ANSWERS = 200
"""Things that SELECT, GROUP BY or ORDER BY lists."""
MOST_MOMENTS = 600
"""Sums over users that the answers to a question are made of: one for COUNT and SUM, two for AVG, three for others."""
MOST_CONDITIONS = 200
"""ANDs and ORs of WHERE, and of HAVING."""
MOST_TERMS = 5_000
"""Products of attributes and conditions that a question adds up."""
MOST_CROSSES = 2**25
"""Pairs of sums, in all groups, whose covariance an answer needs; or pairs of terms of a forecast."""
