"""The format of a report, stated once: 32 bytes, whatever it says.

    byte  0       version of this format: 2
    byte  1       coins: 0 if view and seed were drawn on the device, 1 if they were assigned
    bytes 2-3     slot: which of a user's reports for the table
    bytes 4-7     round; 0 in a collection without rounds
    bytes 8-15    tag: first 8 bytes of the SHA-256 of "(specification's SHA-256 in hexadecimal):(table)"
    bytes 16-19   view
    bytes 20-23   hash seed
    bytes 24-31   y: what the oracle answered              all unsigned, big-endian

In JSON the same bytes stand as 64 hexadecimal digits, so that the length of a message does not depend on the data. A
table of reports has a column for the slot and for each number from the view on, next to user ids and public attributes.
Standard library only, for devices.
"""

from __future__ import annotations

import struct

REPORT_VERSION = 2
FIELD_BYTES = {"version": 1, "coins": 1, "slot": 2, "round": 4, "tag": 8, "view": 4, "seed": 4, "y": 8}
"""The fields in their order, each an unsigned integer of so many bytes."""
LAYOUT = struct.Struct(">" + "".join({1: "B", 2: "H", 4: "I", 8: "Q"}[size] for size in FIELD_BYTES.values()))
REPORT_BYTES = LAYOUT.size

DRAWN, ASSIGNED = "drawn", "assigned"
COIN_MODES = (DRAWN, ASSIGNED)
"""Who decides view and seed: a draw on the device, or a public function of the user id. Reports say which, by index."""

USER_COLUMN = "uid"
REPORT_COLUMNS = ("slot", "view", "seed", "y")
"""The columns of every table of reports, next to user ids."""
ANSWER_COLUMNS = ("view", "seed", "y")
"""Those that an estimate is made of."""
COLUMN_TYPES = {"slot": "u2", "view": "u4", "seed": "u4", "y": "i8"}
"""What columns hold, as numpy writes it. y is signed because many systems have no unsigned integers of 64 bits."""

SEED_BITS = 8 * FIELD_BYTES["seed"]
SLOT_NUMBERS = 2 ** (8 * FIELD_BYTES["slot"])
VIEW_NUMBERS = 2 ** (8 * FIELD_BYTES["view"])
"""How many slots and views can be numbered."""
LARGEST_SEED = 2**SEED_BITS - 1
COVER = 2 ** (8 * FIELD_BYTES["y"]) - 1
"""The y that says "not my turn": no oracle has so many outcomes. Such a report is dropped."""
