"""Reports that several tests ask."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

USERS = dn.Table(
    "users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single", "widowed"), city=dn.Public()
)


@pytest.fixture(scope="package")
def folder(tmp_path_factory):
    """Reports of 20,000 people, hardly any of them widowed; a dimension; a question."""
    parent = tmp_path_factory.mktemp("shop")
    random, size = np.random.default_rng(1), 20_000
    frame = pa.table({
        "uid": np.arange(size),
        "age": np.clip(random.normal(45, 15, size).astype(int), 1, 95),
        "marital": np.array(["married", "single", "widowed"])[random.choice(3, size, p=[0.6, 0.399, 0.001])],
        "city": np.array(["Rome", "Oslo", "Bern"])[random.integers(0, 3, size)],
    })  # fmt: skip
    options = {"source": dn.SeededSource(1), "simulation": True}
    dn.Collection(USERS, epsilon=3.0).perturb(users=frame, out=parent / "reports", **options)
    (parent / "cities.csv").write_text("name,country\nRome,Italy\nOslo,Norway\n")
    (parent / "count.sql").write_text("SELECT marital, COUNT(*) AS n FROM users GROUP BY marital\n;\n")
    return parent
