"""How bytes, texts and values become what nobody would write."""

import copy
from datetime import UTC, date, datetime, time

PIECES = [
    *(
        b"\x00",
        b"\xff",
        b"\xfe\xff",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\xc3",
        b"\n",
        b"\r",
        b"\r\n",
        b"\\",
        b'"',
        b"'",
    ),
    *(
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b":",
        b"=",
        b"#",
        b".",
        b"-",
        b"+",
        b"_",
        b" ",
        b"\t",
        b"\xe2\x80\xa8",
        b"\xc2\xb2",
    ),
    *(
        b"NaN",
        b"nan",
        b"inf",
        b"-inf",
        b"Infinity",
        b"1e999",
        b"-1",
        b"0",
        b"1e-320",
        b"1_0",
        b"0x1f",
        b"null",
        b"true",
    ),
    *(
        b"9223372036854775808",
        b"1" * 400,
        b"18446744073709551616",
        b"\\ud800",
        b"\\u0000",
        b"1979-05-27",
        b'""',
        b"[" * 50,
    ),
]
VALUES = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        5,
        0.5,
        -0.5,
        1e-320,
        1e308,
        float("inf"),
        float("nan"),
        -0.0,
        2**31,
        2**63,
        2**64,
    ),
    *(
        10**30,
        -(10**30),
        "",
        " ",
        "a",
        "age",
        "uid",
        "\x00",
        "\ud800",
        "é",
        "1",
        "1.5",
        "inf",
        "nan",
        "x" * 300,
        "1e999",
    ),
    *("2020-01-01", "hour", "day", "0/1", "1/3", "1/0", "²", [], [None], [1, "a"], [[]], {}, {"a": 1}, {"": None}),
    *(
        b"bytes",
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=UTC),
        time(1),
        (1, 2),
        {1},
        1j,
        object,
    ),
]
"""What a field may hold that should not."""
PLAIN = [value for value in VALUES if value is None or isinstance(value, (bool, int, float, str, list, dict))]
"""Those that JSON can write."""


def mutated_bytes(chance, data):
    """The same with one to four changes: bits, pieces, cuts, repetitions."""
    made = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        position = chance.randrange(len(made) + 1)
        length = chance.choice((1, 1, 2, 4, 16, 100))
        match chance.randrange(8):
            case 0 if position < len(made):
                made[position] ^= 1 << chance.randrange(8)
            case 1 if position < len(made):
                made[position] = chance.randrange(256)
            case 2:
                del made[position : position + length]
            case 3:
                made[position:position] = made[position : position + length]
            case 4:
                made[position : position + length] = chance.choice(PIECES)
            case 5:
                made[position:position] = chance.choice(PIECES)
            case 6:
                other = chance.randrange(len(made) + 1)
                made[position:position] = made[other : other + length]
            case _ if chance.random() < 0.2:
                del made[position:]
    return bytes(made)


def mutated_value(chance, tree, values=VALUES):
    """The same tree of lists and mappings with one to three fields changed, removed, renamed or doubled."""
    made = [copy.deepcopy(tree)]
    for _ in range(chance.choice((1, 1, 2, 3))):
        holder, key = chance.choice(list(_places(made)))
        match chance.randrange(6):
            case 0 if holder is not made:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[chance.choice(("", "name", "kind", "low", "values", "x", "\ud800", "many", "é"))] = holder.pop(
                    key
                )
            case 2 if isinstance(holder, list) and holder is not made:
                holder.insert(key, copy.deepcopy(holder[key]))
            case 3:
                other, key_there = chance.choice(list(_places(made)))
                holder[key] = copy.deepcopy(other[key_there])
            case 4:
                holder[key] = chance.choice(([holder[key]], {"a": holder[key]}, str(holder[key])))
            case _:
                holder[key] = copy.deepcopy(chance.choice(values))
    return made[0]


def _places(holder):
    """Everywhere that a value stands, as its holder and its key there."""
    for key, value in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
        yield holder, key
        if isinstance(value, (dict, list)):
            yield from _places(value)
