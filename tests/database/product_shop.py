"""People, their transactions, and products that shops report: two populations in one collection."""

import numpy as np
import pyarrow as pa

import deniable as dn

USERS = dn.Table("users", age=dn.Ordinal(0, 9), city=dn.Public())
TRANSACTIONS = dn.Table("transactions", many=1, amount=dn.Ordinal(0, 9), pid=dn.Ordinal(1, 12))
PRODUCTS = dn.Table("products", owner="shop", key="pid", country=dn.Categorical("CN", "DE"), price=dn.Ordinal(0, 4))


def product_shop(epsilon, of_shop, **settings):
    """The collection, with an ε for each population."""
    return dn.Collection(USERS, TRANSACTIONS, PRODUCTS, epsilon=epsilon, owners={"shop": of_shop}, **settings)


def raw_rows(users=500, seed=3):
    """Rows of everybody. Some have no transaction, products 11 and 12 no row, and product 40 is never bought."""
    random = np.random.default_rng(seed)
    buyers = np.arange(0, users, 2)
    return {
        "users": pa.table({
            "uid": np.arange(users), "age": random.integers(0, 10, users), "city": ["Rome", "Oslo"] * (users // 2),
        }),
        "transactions": pa.table({
            "uid": buyers, "amount": random.integers(0, 10, buyers.size), "pid": random.integers(1, 13, buyers.size),
        }),
        "products": pa.table({
            "pid": [*range(1, 11), 40], "country": (["CN", "DE", "CN"] * 4)[:11], "price": random.integers(0, 5, 11),
        }),
    }  # fmt: skip
