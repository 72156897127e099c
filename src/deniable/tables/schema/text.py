"""Text attributes: words that nobody listed beforehand, as bytes in a prefix tree.

A word is its UTF-8 bytes, filled up with zero bytes to `max_length`: zero ends a word, and no word holds one. Its
position is the number that these bytes write, so that its cell in the level of prefixes of b bytes is the first b.
Reports show prefixes, and the server follows those that many people share (`queries/words`). Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deniable.checks import check_integer
from deniable.errors import InvalidParameter
from deniable.tables.schema.placing import MISSING, OUTSIDE, WRONG_TYPE, Unplaceable

LONGEST_WORD = 64
"""Bytes of the longest words that can be collected: every byte is a level, and people are divided among levels."""
MOST_FIRST_PREFIXES = 1_000
"""The first level has prefixes of so many bytes that there are at most this many of them."""
LAST_LEVEL_CHANCE = 2
"""How much likelier the last level is than any other: it alone shows the longest words as a whole."""
_BYTES = 256
_FOLLOWING = range(0x80, 0xC0)
_LEADING = range(0xC2, 0xF5)
_PRINTABLE = range(0x20, 0x7F)


def text_of(domain: Any) -> Text | None:
    """A text, or the text that the listed words of a question come from; None for any other domain."""
    known = domain if isinstance(domain, Text) else getattr(domain, "text", None)
    return known if isinstance(known, Text) else None


@dataclass(frozen=True, slots=True)
class Text:
    """Words, addresses or names that need no list: up to `max_length` bytes of UTF-8, without control characters.

    `alphabet` are the ASCII characters that words may hold, if they are known: the fewer, the rarer the words that are
    found. A row with a word that is longer, or holds something else, is reported as no word at all.

    Ask `SELECT word, COUNT(*) FROM searches GROUP BY word` for the frequent words.

    >>> Text(max_length=12).levels, Text(max_length=5, alphabet="abc").levels
    ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12), (4, 5))
    """

    max_length: int
    alphabet: str | None = None

    def __post_init__(self) -> None:
        problem = f"must be 1 to {LONGEST_WORD} bytes"
        check_integer("max_length", self.max_length, 1, LONGEST_WORD, problem=problem, repair="Use 16.")
        if self.alphabet is None:
            return
        if not isinstance(self.alphabet, str) or not all(letter in map(chr, _PRINTABLE) for letter in self.alphabet):
            problem = "must be a text of printable ASCII characters"
            raise InvalidParameter("alphabet", problem, 'Write "abcdef…", or leave it out for any text.')
        if len(set(self.alphabet)) != len(self.alphabet) or len(self.alphabet) < 2:
            problem = "must list at least two characters, each once"
            raise InvalidParameter("alphabet", problem, 'Write "abcdef…", or leave it out for any text.')
        object.__setattr__(self, "alphabet", "".join(sorted(self.alphabet)))

    @property
    def size(self) -> int:
        """How many positions there are; most of them are not words."""
        return int(_BYTES**self.max_length)

    @property
    def known_size(self) -> int:
        """The same: what is missing has no position of its own."""
        return self.size

    @property
    def missing(self) -> None:
        """Rows without a word are reported as no word."""
        return

    @property
    def missing_position(self) -> None:
        """There is none."""
        return

    @property
    def aggregatable(self) -> bool:
        """Words are not summed."""
        return False

    @property
    def first_level(self) -> int:
        """How many bytes the shortest prefixes have that are reported."""
        symbols = 1 + (len(_PRINTABLE) + len(_LEADING) if self.alphabet is None else len(self.alphabet))
        length = 1
        while symbols ** (length + 1) <= MOST_FIRST_PREFIXES and length < self.max_length:
            length += 1
        return length

    @property
    def levels(self) -> tuple[int, ...]:
        """How many bytes the prefixes of each level have."""
        return tuple(range(self.first_level, self.max_length + 1))

    @property
    def no_word(self) -> int:
        """The position of whatever is not a word: bytes that no text holds."""
        return self.size - 1

    def encode(self, value: Any) -> int:
        """The position of a word."""
        return int.from_bytes(self.as_bytes(value).ljust(self.max_length, b"\0"), "big")

    def as_bytes(self, value: Any) -> bytes:
        """The bytes of a word, if it is one."""
        if value is None:
            raise Unplaceable(MISSING)
        if not isinstance(value, str):
            raise Unplaceable(WRONG_TYPE)
        if not self.holds(value):
            raise Unplaceable(OUTSIDE)
        return value.encode()

    def holds(self, text: str) -> bool:
        """Whether a text is a word of this domain."""
        try:
            written = text.encode()
        except UnicodeEncodeError:
            return False
        if len(written) > self.max_length:
            return False
        if self.alphabet is not None:
            return set(text) <= set(self.alphabet)
        return all(byte >= _PRINTABLE.start and byte != _PRINTABLE.stop for byte in written)

    def decode(self, code: int) -> str | None:
        """The word at a position; None where there is none."""
        try:
            text = code.to_bytes(self.max_length, "big").rstrip(b"\0").decode()
        except UnicodeDecodeError:
            return None
        return text if self.holds(text) else None

    def followers(self, last: int | None) -> tuple[int, ...]:
        """The bytes that may follow a byte of a prefix, None at its beginning; zero, which ends the word, first.

        After the first byte of a longer character, only bytes that continue it do; what is not UTF-8 after all is
        noticed when the word is complete.
        """
        if last == 0:
            return (0,)
        if self.alphabet is not None:
            return (0, *self.alphabet.encode())
        if last is not None and last in _LEADING:
            return tuple(_FOLLOWING)
        among = (0, *_PRINTABLE, *_LEADING)
        return (*among, *_FOLLOWING) if last is not None and last in _FOLLOWING else among

    def to_dict(self) -> dict[str, Any]:
        """The canonical form."""
        return {
            "kind": "text",
            "max_length": self.max_length,
            **({} if self.alphabet is None else {"alphabet": self.alphabet}),
        }
