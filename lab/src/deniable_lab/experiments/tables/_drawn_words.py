"""Words that people have, drawn: how common they are follows Zipf's law."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

_STARTS = [*"bcdfghjklmnprstvwyz", "br", "ch", "dr", "fl", "gr", "pl", "sh", "st", "th", "tr"]
_VOWELS = ["a", "a", "e", "e", "i", "i", "o", "o", "u", "ai", "ea", "oo"]
_ENDS = ["", "", "", "n", "r", "s", "t", "l", "m", "ng", "ck"]
_ENDINGS = [".com", ".com", ".com", ".org", ".net", ".de", ".io", ".co.uk"]
_PATHS = ["", "", "", "/news", "/shop", "/login", "/en", "/a"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ADDRESS_LETTERS = LETTERS + "0123456789./-"
DISTINCT = 20_000


@dataclass(frozen=True, slots=True)
class Words:
    """A list of words, the most common first, and which one each person has."""

    listed: tuple[str, ...]
    held: np.ndarray
    max_length: int
    alphabet: str

    def top(self, k: int) -> set[str]:
        """The k words that most people have."""
        counts = np.bincount(self.held, minlength=len(self.listed))
        return {self.listed[number] for number in np.argsort(-counts, kind="stable")[:k].tolist()}


@lru_cache(maxsize=2)
def drawn_words(data: str, people: int, seed: int) -> Words:
    """WORDS: pronounceable words of 2 to 12 letters, exponent 1.5. ADDRESSES: of web sites, 6 to 20 bytes, 1.2."""
    random = np.random.default_rng([seed, len(data)])
    addresses = data == "ADDRESSES"
    longest, exponent = (20, 1.2) if addresses else (12, 1.5)
    listed: dict[str, None] = {}
    while len(listed) < DISTINCT:
        word = "".join(
            part
            for _ in range(random.integers(1, 4))
            for part in (random.choice(_STARTS), random.choice(_VOWELS), random.choice(_ENDS))
        )
        if addresses:
            word = f"{'m.' if random.random() < 0.1 else ''}{word}{random.choice(_ENDINGS)}{random.choice(_PATHS)}"
        if len(word) <= longest:
            listed[word] = None
    chances = 1.0 / np.arange(1, DISTINCT + 1) ** exponent
    held = random.choice(DISTINCT, people, p=chances / chances.sum())
    return Words(tuple(listed), held, longest, ADDRESS_LETTERS if addresses else LETTERS)


def as_bits(words: Words) -> tuple[np.ndarray, int]:
    """Every listed word as a number of a fixed count of bits, which baselines divide: 5 or 6 bits a character."""
    each = len(words.alphabet).bit_length()
    codes = {letter: code for code, letter in enumerate(words.alphabet, 1)}
    numbers = []
    for word in words.listed:
        number = 0
        for letter in word.ljust(words.max_length, "\0"):
            number = number << each | codes.get(letter, 0)
        numbers.append(number)
    return np.array(numbers, dtype=object), each * words.max_length
