"""Columns of words: the bytes of each, filled up with zeros, and the numbers of the cells that their prefixes are."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Integers
from deniable.mechanisms.hashing import CELL_OFFSET, mix_array
from deniable.randomness import Source
from deniable.tables.designs.views import NODE_WORD_BITS, NUMBERED_CELLS
from deniable.tables.schema.attributes import Private
from deniable.tables.schema.text import Text

Bytes2D = NDArray[np.uint8]
"""Words or prefixes × bytes."""
_WORD_BYTES = NODE_WORD_BITS // 8
_CONTROL_CHARACTERS = r"[\x00-\x1f\x7f]"


def is_text_column(kind: pa.DataType) -> bool:
    """Whether a column of this type holds texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def word_codes(domain: Text, array: pa.Array) -> tuple[NDArray[Any], Booleans] | None:
    """The words of a column as fixed numbers of bytes, and which are words; None if the column has no texts."""
    if not is_text_column(array.type):
        return None
    encoded = pc.dictionary_encode(array.cast(pa.large_string()).fill_null(""))
    distinct = encoded.dictionary
    odd = _CONTROL_CHARACTERS
    if domain.alphabet is not None:
        odd = f"[^{''.join(re.escape(letter) for letter in domain.alphabet)}]"
    fits = np.asarray(pc.less_equal(pc.binary_length(distinct), domain.max_length))
    good = fits & ~np.asarray(pc.match_substring_regex(distinct, odd))
    shortened = pc.if_else(pa.array(good), distinct, "").cast(pa.large_binary())
    which = np.asarray(encoded.indices)
    words = np.array(shortened.to_numpy(zero_copy_only=False), dtype=f"S{domain.max_length}")
    return words[which] if words.size else np.zeros(0, dtype=f"S{domain.max_length}"), good[which]


def dummies(domain: Private, count: int, source: Source) -> NDArray[Any]:
    """What is reported of rows that cannot be: any value; of a text, what stands for no word."""
    if isinstance(domain, Text):
        return np.full(count, domain.no_word.to_bytes(domain.max_length, "big"), dtype=f"S{domain.max_length}")
    return source.below(domain.size, count)


def as_bytes(words: NDArray[Any]) -> Bytes2D:
    """Words × bytes."""
    width = words.dtype.itemsize
    return np.ascontiguousarray(words).view(np.uint8).reshape(words.size, width)


def prefix_numbers(prefixes: Bytes2D) -> Integers:
    """The cell that each prefix is in the view of prefixes of this length: `Group.number` for arrays."""
    count, length = prefixes.shape
    padded = np.zeros((count, -(-length // _WORD_BYTES) * _WORD_BYTES), dtype=np.uint8)
    padded[:, padded.shape[1] - length :] = prefixes
    words = padded.view(">u4")
    if 256**length <= NUMBERED_CELLS:
        return words[:, 0].astype(np.int64)
    number = np.zeros(count, dtype=np.uint32)
    for word in range(words.shape[1]):
        number = mix_array(number + words[:, word].astype(np.uint32) + np.uint32(CELL_OFFSET))
    return number.astype(np.int64)
