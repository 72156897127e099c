"""Random specifications, rows and draws with what the Python client makes of them, for clients in other languages.

    PYTHONPATH=tests .venv/bin/python -m fuzzing.client_cases SEED CASES

prints a line of JSON per case. The n-th draw below a bound is a number that follows from the case and n alone, so both
sides make the same ones; the digest of all bounds shows whether they did. Values of rows are tagged, because JSON has
neither dates nor integers of 64 bits. What Python refuses, the other side has to refuse.
"""

import hashlib
import json
import math
import random
import sys
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import deniable as dn
from deniable.client import Client, ToPLClient
from deniable.errors import DeniableError
from deniable.tables.schema.specification_entries import canonical_json

EPSILONS = (0.01, 0.1, 0.5, 1.0, math.log(1.5), math.log(2.5), math.log(3), 2.0, 3.7, 8.0, 11.2, 40.0, 90.0)
DESIGNS = ("hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg", "grid")
TEXTS = ("a", "b", "male", "M", "", "Zoë", "🐢", "\uffee", 'q"\\', "x" * 40)
JUNK = (None, True, False, 0, 1, -1, 2, 3, 7, 2.5, 2.0, 1e-05, 4096, 2**62, 2**63, 10**20, "x", "", "uid", "round")
JUNK += ("inf", "2020-01-01", "2020-02-30", "1.50", "0.1", "1E-7", "86400 s", "0.5 s", "clip", "drawn", "assigned")
JUNK += (
    "hio",
    "grid",
    "olh",
    "own",
    "month",
    "year",
    "memoised",
    "fresh",
    "week",
    [],
    {},
    [0, 1],
    ["a", "b"],
    {"a": "b"},
    {"cells": 2},
)
FIRST_DAY = date(2020, 1, 1)


class CaseDraws:
    """Numbers that follow from a name and a count; often the first or the last possible one."""

    def __init__(self, name):
        self._name, self._count, self._bounds = name, 0, hashlib.sha256()

    def __call__(self, bound):
        digest = hashlib.sha256(f"{self._name}:{self._count}".encode()).digest()
        self._count += 1
        self._bounds.update(f"{bound},".encode())
        if digest[0] < 16:
            return 0 if digest[0] < 8 else bound - 1
        return int.from_bytes(digest, "big") % bound

    @property
    def bounds(self):
        """A digest of everything that was asked for."""
        return self._bounds.hexdigest()


def random_number_domain(chance):
    step = chance.choice(["1", "1", "1", "5", "0.5", "0.01", "0.3", "2.5", "1e-7"])
    low, count = chance.choice([0, 1, -30, "0.5", "-7.25", 10**9]), chance.choice([1, 2, 7, 94, 500, 3000, 2**20])
    high = dn.Ordinal(low, _plus(low, step, count), step).decode(count)
    rules = {"summed": chance.random() < 0.8, "round": chance.random() < 0.3}
    if chance.random() < 0.3:
        rules["outside"] = "clip"
    if chance.random() < 0.3:
        rules["missing"] = chance.choice(["own", _plus(low, step, chance.randint(0, count))])
    return dn.Ordinal(low, high, step, **rules)


def _plus(low, step, count):
    return Decimal(low) + count * Decimal(step)


def random_time_domain(chance):
    rules = {"outside": "clip"} if chance.random() < 0.3 else {}
    if chance.random() < 0.4:
        low, unit = FIRST_DAY + timedelta(days=chance.randint(-900, 900)), chance.choice(["month", "quarter", "year"])
        rules |= {"missing": "own"} if chance.random() < 0.4 else {}
        return dn.Dates(low, low + timedelta(days=chance.choice([366, 3000])), unit, **rules)
    if chance.random() < 0.5:
        days = chance.choice([1, 7, 30])
        low = FIRST_DAY + timedelta(days=chance.randint(-900, 900))
        missing = low + timedelta(days=days)
        rules |= {"missing": missing} if chance.random() < 0.3 else {}
        return dn.Ordinal(low, low + timedelta(days=chance.choice([30, 60, 366, 3000])), timedelta(days=days), **rules)
    step = chance.choice([timedelta(hours=1), timedelta(milliseconds=125), timedelta(seconds=90), timedelta(weeks=1)])
    low = datetime(2020, 1, 1) + timedelta(seconds=chance.randint(0, 10**7), milliseconds=chance.choice([0, 0, 640]))
    return dn.Ordinal(low, low + chance.choice([1, 5, 200]) * step, step, **rules)


def random_category_domain(chance):
    kind = chance.choice(["text", "text", "integer", "truth"])
    if kind == "truth":
        return dn.Categorical(True, False)
    if kind == "integer":
        values = chance.sample([0, 1, 2, 10, 20, 50, -7, 2**40, 2**62], chance.randint(2, 6))
        rules = {"missing": chance.choice(["own", values[0]])} if chance.random() < 0.3 else {}
        return dn.Categorical(values, **rules)
    values = chance.sample(TEXTS, chance.randint(2, 7))
    rest = [text for text in TEXTS if text not in values]
    rules = {}
    if rest and chance.random() < 0.4:
        rules["map"] = {text: chance.choice(values) for text in rest[:3]}
    for rule in ("other", "missing"):
        if chance.random() < 0.3:
            rules[rule] = chance.choice([*values, *(["own"] if rule == "missing" else [])])
    return dn.Categorical(values, **rules)


def random_domain(chance):
    kinds = (random_number_domain, random_number_domain, random_category_domain, random_time_domain)
    return chance.choice(kinds)(chance)


def random_table(chance, name):
    attributes = {f"{name}{number}": random_domain(chance) for number in range(chance.choice([1, 1, 2, 3, 4]))}
    if chance.random() < 0.3:
        attributes["city"] = dn.Public()
    many = chance.choice([None, None, 1, 2, 5, 30])
    return dn.Table(name, many, 1 if many is None else chance.randint(1, min(many, 3)), **attributes)


def random_cut(chance, domain):
    size = min(domain.size, 200)
    ordinal = isinstance(domain, dn.Ordinal)
    kind = dn.Points if ordinal and chance.random() < 0.4 else dn.Cells
    if chance.random() < 0.5:
        return kind(chance.randint(2 if kind is dn.Points else 1, size))
    inner = sorted(chance.sample(range(1, domain.size), min(domain.size - 1, chance.randint(1, 5))))
    return kind(sorted({0, *inner, domain.size - 1}) if kind is dn.Points else [0, *inner])


def random_grid(chance, table):
    domains = dict(zip(table.private, table.domains, strict=True))
    views = []
    for _ in range(chance.randint(1, 4)):
        names = chance.sample(table.private, chance.randint(1, min(2, len(table.private))))
        cuts = {name: random_cut(chance, domains[name]) for name in names}
        views.append(dn.GridView(cuts, chance.choice([1, 2, 7, 1000])))
    return views


def random_rounds(chance, epsilon):
    mode = chance.choice(["rotating", "fresh", "memoised"])
    count, settings = chance.randint(1, 9), {}
    if mode == "rotating":
        settings = {"answers": chance.randint(1, count), "cover": chance.random() < 0.5}
    if mode == "memoised":
        permanent = epsilon * chance.choice([0.9, 1, 1.5, 3, math.inf])
        settings = {"permanent": permanent, "changes_are_public": chance.random() < 0.8}
        settings |= {"buckets": chance.choice([2, 3, 9])} if chance.random() < 0.4 else {}
    if chance.random() < 0.3:
        settings["start"] = chance.choice(["2020-01-31", "2026-05-04"])
    return dn.Rounds(count, every=chance.choice(["hour", "day", "week", "month"]), mode=mode, **settings)


def random_collection(chance):
    tables = [random_table(chance, name) for name in ("users", "orders", "visits")[: chance.choice([1, 1, 2, 3])]]
    epsilon, design = chance.choice(EPSILONS), chance.choice(DESIGNS)
    settings = {"coins": chance.choice(["drawn", "assigned"]), "oracle": chance.choice(["auto", "subset", "olh"])}
    if chance.random() < 0.2:
        settings["shares"] = {table.name: chance.choice([1, 0.3, 1.7, 1e-3, 12]) for table in tables}
    if design == "grid" and chance.random() < 0.7:
        settings["grids"] = {table.name: random_grid(chance, table) for table in tables}
    if chance.random() < 0.3:
        settings |= {"rounds": random_rounds(chance, epsilon), "name": "poll"}
    return dn.Collection(*tables, epsilon=epsilon, design=design, fanout=chance.choice([2, 3, 5, 16, 300]), **settings)


def random_value(chance, domain):
    """A value of a row, mostly of the domain; tagged for the other side."""
    if chance.random() < 0.12:
        return chance.choice([None, "", "a", 31, 31.5, True, math.nan, 1e300, 2**70, [], "2020-01-01", -0.0001])
    if isinstance(domain, dn.Categorical):
        return chance.choice([*domain.values, *domain.map, "elsewhere", 7])
    beyond = 2 if chance.random() < 0.2 else 0
    value = domain.decode(chance.randint(-beyond, domain.known_size - 1 + beyond))
    if value is None:  # missing values have this position
        return None
    if domain.kind == "number":
        exact = float(value) + chance.choice([0, 0, 0, 1e-9, 0.3, -0.5]) * float(domain.step)
        return int(exact) if exact.is_integer() else exact
    if domain.kind == "date":
        return value if chance.random() < 0.7 else datetime(value.year, value.month, value.day, 23, 59, 59)
    return (value + timedelta(milliseconds=chance.choice([0, 1, 124]))).replace(
        microsecond=value.microsecond // 1000 * 1000
    )


def tagged(value):
    if isinstance(value, datetime):
        return {"time": round(value.replace(tzinfo=UTC).timestamp() * 1000)}
    if isinstance(value, date):
        return {"time": 1000 * round(datetime(value.year, value.month, value.day, tzinfo=UTC).timestamp())}
    if isinstance(value, float):
        return {"float": "NaN" if math.isnan(value) else repr(value)}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"integer": str(value)}
    return value


def random_rows(chance, table):
    count = 1 if table.many is None else chance.choice([0, 1, 2, 3, table.many + 2])
    domains = dict(zip(table.private, table.domains, strict=True))
    rows = []
    for _ in range(count if chance.random() < 0.99 else 2):
        names = [name for name in domains if chance.random() < 0.97]
        rows.append({name: random_value(chance, domains[name]) for name in names})
        if chance.random() < 0.005:
            rows[-1]["unknown"] = 1
    return rows


def table_case(chance, name):
    collection = random_collection(chance)
    table = chance.choice(collection.tables)
    user = chance.choice(["ann", "Zoë 🐢", "7", -(2**63)]) if chance.random() < 0.97 else None
    asked = [None] if collection.rounds is None else [chance.randint(1, collection.rounds.count) for _ in range(2)]
    if chance.random() < 0.01:
        asked = [77]
    now = datetime(2026, 6, 1, tzinfo=UTC).timestamp()
    rows, draws, sent = [random_rows(chance, table) for _ in asked], CaseDraws(name), []
    case = {
        "specification": collection.to_json(),
        "table": table.name,
        "user": tagged(user),
        "rounds": asked,
        "now": now,
        "rows": [[{key: tagged(value) for key, value in row.items()} for row in held] for held in rows],
        "draws": name,
    }
    try:
        client = Client(collection, randbelow=draws, user=user, clock=lambda: now)
        for number, held in zip(asked, rows, strict=True):
            sent.append([report.to_bytes().hex() for report in client.reports(table.name, held, number)])
    except DeniableError:
        return case | {"refused": True}
    return case | {"sha256": collection.sha256, "reports": sent, "bounds": draws.bounds}


def mutated_entries(chance, entries):
    """The entries of a specification with a field changed, removed or added somewhere."""
    inside = [entries]
    for entry in inside:  # grows while it is walked
        parts = entry.values() if isinstance(entry, dict) else entry
        inside.extend(part for part in parts if isinstance(part, (dict, list)))
    entry = chance.choice([part for part in inside if part] or [entries])
    key = chance.choice(list(entry)) if isinstance(entry, dict) else chance.randrange(len(entry))
    change = chance.random()
    if change < 0.15:
        del entry[key]
    elif change < 0.25 and isinstance(entry, dict):
        entry[chance.choice(["extra", "name", "map", "missing", "start", "rounds", "grids"])] = chance.choice(JUNK)
    else:
        entry[key] = chance.choice([*JUNK, entry[key]])
    return entries


def specification_case(chance):
    """A canonical form in which something was changed: whether it still is one, and whether a device may answer."""
    entries = mutated_entries(chance, json.loads(random_collection(chance).to_json()))
    text = canonical_json(entries)
    try:
        collection = dn.Collection.from_dict(json.loads(text))
        Client(collection, user="ann")
        accepted = collection.to_json() == text
    except DeniableError:
        accepted = False
    return {"specification": text, "accepted": accepted}


def stream_case(chance, name):
    settings = {
        "epsilon": chance.choice(EPSILONS),
        "bound": chance.choice([1, 500, 0.25, 2.0**40, 1e-3]),
        "name": chance.choice(["", "baskets", "Zoë 🐢\x7f"]),
        "scale": chance.choice(["log", "linear"]),
        "mechanism": chance.choice(["hybrid", "hybrid", "piecewise", "rounding", "wave"]),
        "grid": chance.choice([None, None, 2, 16, 1000]),
        "renewal": chance.choice([0.0, 0.0, 0.05, 0.5]),
    }
    bound, draws = settings["bound"], CaseDraws(name)
    value = chance.choice([0, 1, 0.3, bound, 2 * bound, -1, math.nan, None, "7", chance.uniform(0, bound)])
    theta = chance.choice([None, bound, chance.uniform(0, bound), 0.0, 3 * bound])
    case = {"stream": settings, "value": tagged(value), "theta": theta, "draws": name}
    try:
        report = ToPLClient(randbelow=draws, **settings).report(value, theta)
    except DeniableError:
        return case | {"refused": True}
    return case | {"report": report.to_bytes().hex(), "bounds": draws.bounds}


def random_case(seed, number):
    """The case of a number, as a dict that JSON can hold."""
    name = f"{seed}-{number}"
    chance = random.Random(name)  # noqa: S311 - no secret
    while True:
        try:
            kind = chance.random()
            if kind < 0.7:
                return table_case(chance, name)
            return specification_case(chance) if kind < 0.85 else stream_case(chance, name)
        except DeniableError:  # the draft of a specification that is refused: another one
            continue


def main(seed, cases):
    for number in range(int(cases)):
        print(json.dumps(random_case(seed, number), ensure_ascii=False))


if __name__ == "__main__":
    main(*sys.argv[1:])
