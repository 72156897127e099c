"""Specifications of TOML and JSON with changed bytes, and as values of Python: each loads, or is refused by name."""

import json
from datetime import date

import deniable as dn
from deniable.tables.specification.specification_files import to_toml
from fuzzing.harness import cases, fuzz
from fuzzing.mutations import PLAIN, VALUES, mutated_bytes, mutated_value

SHOP = dn.Collection(
    dn.Table(
        "users",
        age=dn.Ordinal(1, 95),
        price=dn.Ordinal("0.5", "9.5", "0.5", summed=True),
        kind=dn.Categorical("a", "b", "é"),
        born=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 9)),
        city=dn.Public(),
    ),
    dn.Table("orders", many=5, tau=2, amount=dn.Ordinal(0, 20), box=dn.Categorical(True, False)),
    epsilon=2.0,
    shares={"users": 1, "orders": 3},
)
GRID = dn.Collection(
    dn.Table("users", age=dn.Ordinal(0, 19), kind=dn.Categorical("a", "b", "c")),
    epsilon=1.0,
    design="grid",
    grids={
        "users": [
            {"axes": {"age": {"cells": 8}}, "weight": 122},
            {"axes": {"age": {"points": [0, 3, 9, 19]}, "kind": {"cells": 3}}, "weight": 185},
        ]
    },
)
TREES = [SHOP.to_dict(), GRID.to_dict()]
FILES = {
    f"{name}{ending}": text.encode()
    for name, collection in (("shop", SHOP), ("grid", GRID))
    for ending, text in ((".toml", to_toml(collection.to_dict())), (".json", collection.to_json()))
}


def used(collection):
    """Whatever loads can be written and read again, and a device understands it."""
    assert dn.Collection.from_dict(json.loads(collection.to_json())).sha256 == collection.sha256
    for table in collection.tables:
        collection.reports_per_user(table.name), collection.epsilon_per_report(table.name)
    return repr(collection)


@cases(300)
def test_bytes_of_specifications(tmp_path, count):
    def attempt(chance):
        name, data = chance.choice(list(FILES.items()))
        path = tmp_path / name
        path.write_bytes(mutated_bytes(chance, data))
        used(dn.Collection.load(path))

    outcomes = fuzz(attempt, "bytes of specifications", count)
    assert set(outcomes) <= {"works", "InvalidParameter"}
    assert min(outcomes.values()) > count // 50


@cases(500)
def test_values_of_specifications(tmp_path, count):
    def attempt(chance):
        tree = mutated_value(chance, chance.choice(TREES), values := chance.choice((VALUES, PLAIN)))
        if values is VALUES:
            made = dn.Collection.from_dict(tree)
        else:
            path = tmp_path / "shop.json"
            path.write_text(json.dumps(tree))
            made = dn.Collection.load(path)
        used(made)

    outcomes = fuzz(attempt, "values of specifications", count)
    assert set(outcomes) <= {"works", "InvalidParameter"}
    assert min(outcomes.values()) > count // 50
