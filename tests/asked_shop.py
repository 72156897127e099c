"""A collector with a few hundred reports and a key for each scope, for tests of what asks it."""

import datetime

import deniable as dn
from deniable.service.collector import init_folder, open_collector
from deniable.service.settings import ServeSettings
from deniable.stores.collector.upload import Upload

FIRST_DAY, LAST_DAY = datetime.date(2026, 1, 1), datetime.date(2026, 3, 31)
SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95), sex=dn.Categorical("f", "m")),
    dn.Table("orders", many=4, amount=dn.Ordinal(0, 500), day=dn.Ordinal(FIRST_DAY, LAST_DAY)),
    epsilon=8.0,
    coins="assigned",
    name="shop",
)  # fmt: skip


def rows_of(number):
    """What user `number` has: one row of users, and of orders as many as her number says."""
    orders = [
        {"amount": 17 * number % 500, "day": FIRST_DAY + datetime.timedelta(days=(7 * number + index) % 90)}
        for index in range(number % 4)
    ]
    return {"users": [{"age": 1 + number % 95, "sex": "fm"[number % 3 == 0]}], "orders": orders}


def fill(store, collection=SHOP, users=150):
    """Add the reports of some users, as devices make them."""
    uploads = []
    for number in range(users):
        client = collection.client(user=f"user {number}")
        for table, rows in rows_of(number).items():
            for slot, report in enumerate(client.reports(table, rows)):
                uploads.append(Upload(table, 0, f"user {number}", slot, report.to_bytes()))
    store.add(uploads)


def opened(folder, users=150, collection=SHOP, streams=None, **settings):
    """A collector over a new folder, and its keys by scope."""
    init_folder(collection, folder, streams=streams)
    collector = open_collector(folder, ServeSettings(**settings))
    fill(collector.store, collection, users=users)
    keys = {}

    def add(before):
        for scope in ("ask", "operate"):
            before, keys[scope] = before.with_key(f"{scope}er", scope)
        return before

    collector.keys.change(add)
    return collector, keys
