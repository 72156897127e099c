"""Test vectors for rounds: `python tests/golden/round_vectors.py` writes rounds.json anew.

A vector has a specification, a user, the rows of a table, and for each round what was drawn and sent. Draws are
pairs (bound, number). The first draw of a client without assigned coins, or with memoised rounds, is its secret.
"""

import json
from pathlib import Path

import deniable as dn

FILE = Path(__file__).with_name("rounds.json")
USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single", "widowed"))
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 500))
MEMOISED = {"mode": "memoised", "permanent": 4.0, "changes_are_public": True}
SETTINGS = (
    ("hio", "assigned", {}),
    ("hio", "assigned", {"answers": 2, "cover": True}),
    ("hio", "drawn", {"answers": 2}),
    ("ahio", "assigned", {"mode": "fresh"}),
    ("hio", "drawn", {"mode": "fresh"}),
    ("hio", "assigned", MEMOISED),
    ("hio", "drawn", MEMOISED),
    ("ehio", "drawn", MEMOISED),
    ("mg", "assigned", MEMOISED | {"buckets": 3}),
)
ROWS = {
    "users": [[{"age": 31, "marital": "single"}]] * 2 + [[{"age": 32, "marital": "married"}]] * 2,
    "orders": [[], [{"amount": 7}], [{"amount": 7}], [{"amount": 7}, {"amount": 400}]],
}


def vectors():
    """Every setting, for both tables and two users."""
    made = []
    for number, (design, coins, rounds) in enumerate(SETTINGS):
        collection = dn.Collection(
            USERS, ORDERS, epsilon=3.0, design=design, coins=coins, name="shop", rounds=dn.Rounds(4, **rounds)
        )
        for table, user in (("users", "ann"), ("orders", 7)):
            made.append(_vector(collection, table, user, number))
    return made


def _vector(collection, table, user, number):
    asked, sent, draws = [], [], []
    count = iter(range(10**6))

    def randbelow(bound):
        drawn = (0x9E3779B97F4A7C15F39CC0605CEDC834 * (next(count) + 17 * number + 1)) ** 3 % bound
        draws.append([str(bound), str(drawn)])
        return drawn

    client = dn.client.Client(collection, randbelow=randbelow, user=user)
    for turn, rows in enumerate(ROWS[table], 1):
        before = len(draws)
        reports = client.reports(table, rows, turn)
        sent.append([report.to_bytes().hex() for report in reports])
        asked.append(draws[before:])
    return {
        "specification": collection.to_dict(),
        "sha256": collection.sha256,
        "table": table,
        "user": user,
        "rows": ROWS[table],
        "draws": asked,
        "reports": sent,
    }


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(vector) for vector in vectors())
    FILE.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
