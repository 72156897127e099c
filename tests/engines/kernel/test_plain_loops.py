"""A small question is answered without the compiler, and the answer is the same."""

import subprocess
import sys

import numpy as np
import pytest

import deniable as dn
from deniable.engines.kernel import plain_loops
from deniable.engines.local import block_moments
from deniable.randomness import SeededSource

PEOPLE = 1_000
USERS = dn.Table("users", age=dn.Ordinal(0, 24), city=dn.Categorical("a", "b", "c"), region=dn.Public())
ORDERS = dn.Table("orders", amount=dn.Ordinal(0, 99), many=3)
QUESTIONS = [
    "SELECT COUNT(*) FROM users WHERE age BETWEEN 3 AND 17",
    "SELECT AVG(age) FROM users WHERE city = 'a'",
    "SELECT region, SUM(age) FROM users GROUP BY region",
    "SELECT city, COUNT(*) FROM users GROUP BY city",
    "SELECT SUM(amount), COUNT(*) FROM orders WHERE amount > 20",
    "SELECT COUNT(*) FROM users JOIN orders USING (uid) WHERE age < 12 AND amount < 50",
]


@pytest.fixture(
    scope="module", params=[("hio", "auto"), ("sc", "subset"), ("hio", "olh"), ("hio", "subset"), ("ahio", "auto")]
)
def database(request):
    design, oracle = request.param
    random = np.random.default_rng(5)
    frames = {
        "users": {
            "uid": np.arange(PEOPLE),
            "age": random.integers(0, 25, PEOPLE),
            "city": random.choice(list("abc"), PEOPLE),
            "region": random.choice(["north", "south"], PEOPLE),
        },
        "orders": {"uid": random.integers(0, PEOPLE, 2 * PEOPLE), "amount": random.integers(0, 100, 2 * PEOPLE)},
    }
    collection = dn.Collection(USERS, ORDERS, epsilon=3.0, design=design, oracle=oracle)
    return dn.connect(collection.perturb(**frames, source=SeededSource(1), simulation=True))


@pytest.mark.parametrize("sql", QUESTIONS)
def test_plain_and_compiled_loops_agree(database, sql, monkeypatch):
    plan = database.plan(sql)
    moments = {}
    for plain in (True, False):
        monkeypatch.setattr(block_moments, "takes_plain_loops", lambda *_, plain=plain: plain)
        moments[plain] = block_moments.block_moments(plan, database.engine.stores, {})
    assert moments[True].keys == moments[False].keys
    for part in ("users", "sums", "crosses", "between"):
        plain, compiled = (getattr(moments[which], part) for which in (True, False))
        np.testing.assert_allclose(plain, compiled, rtol=1e-9, atol=1e-9 * max(np.abs(compiled).max(), 1.0))


def test_plain_loops_end_when_they_cost_as_much_as_the_compiler(monkeypatch):
    monkeypatch.setattr(plain_loops, "compiler_is_loaded", lambda: False)
    monkeypatch.setattr(plain_loops, "_TALLY", plain_loops._Tally())
    third = plain_loops.PLAIN_HASHES / 3
    taken = [plain_loops.takes_plain_loops(third / 10, 9.0, 1) for _ in range(4)]
    assert taken == [True, True, True, False]
    assert not plain_loops.takes_plain_loops(1, 1.0, plain_loops.MOST_PLAIN_COLUMNS + 1)
    monkeypatch.setattr(plain_loops, "compiler_is_loaded", lambda: True)
    assert not plain_loops.takes_plain_loops(1, 1.0, 1)


def test_a_question_on_the_command_line_loads_neither_compiler_nor_pandas(tmp_path):
    table = dn.Table("users", age=dn.Ordinal(0, 24))
    dn.Collection(table, epsilon=3.0).perturb(
        users={"uid": np.arange(100), "age": np.arange(100) % 25}, out=tmp_path / "r"
    )
    code = """if True:
        import sys
        from deniable.cli.main import start
        sys.argv = ["deniable", "query", sys.argv[1], "SELECT AVG(age) FROM users WHERE age < 12"]
        try:
            start()
        except SystemExit as end:
            heavy = ("numba", "pandas", "scipy.stats", "scipy.linalg", "scipy.special", "matplotlib", "pyspark")
            print(end.code, *(name for name in heavy if name in sys.modules))
    """
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "r"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1].strip() == "0"
