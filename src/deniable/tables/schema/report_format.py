"""The format of a report, stated once: 16 bytes, whatever it says.

    byte  0      version of this format
    byte  1      tag: first byte of the SHA-256 of "(specification's SHA-256 in hexadecimal):(table)"
    bytes 2-3    slot: which of a user's reports for the table
    bytes 4-7    view
    bytes 8-11   hash seed
    bytes 12-15  y: what the oracle answered              all unsigned, big-endian

In JSON the same bytes stand as 32 hexadecimal digits, so that the length of a message does not depend on the data. A
table of reports has a column for each number from the slot on, next to user ids and public attributes. Standard library
only, for devices.
"""

from __future__ import annotations

import struct

REPORT_VERSION = 1
FIELD_BYTES = {"version": 1, "tag": 1, "slot": 2, "view": 4, "seed": 4, "y": 4}
"""The fields in their order, each an unsigned integer of so many bytes."""
LAYOUT = struct.Struct(">" + "".join({1: "B", 2: "H", 4: "I"}[size] for size in FIELD_BYTES.values()))
REPORT_BYTES = LAYOUT.size

USER_COLUMN = "uid"
REPORT_COLUMNS = ("slot", "view", "seed", "y")
"""The columns of every table of reports, next to user ids."""
ANSWER_COLUMNS = ("view", "seed", "y")
"""Those that an estimate is made of."""

SEED_BITS = 8 * FIELD_BYTES["seed"]
SLOT_NUMBERS = 2 ** (8 * FIELD_BYTES["slot"])
VIEW_NUMBERS = 2 ** (8 * FIELD_BYTES["view"])
"""How many slots and views can be numbered."""
LARGEST_SEED = 2**SEED_BITS - 1
