"""From frames and files to reports: any frame, any file, honest counts, whole datasets or none."""

import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.collecting import folder_writing, user_batches
from deniable.engines.collecting import perturbing as collecting
from deniable.engines.collecting import sorted_rows as row_reading
from deniable.errors import BadInput, Failure, InvalidData, InvalidParameter, SimulationOnly
from deniable.randomness import SeededSource

USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 20), kind=dn.Categorical("a", "b"))
SHOP = dn.Collection(USERS, ORDERS, epsilon=4.0)
SEEDED = {"simulation": True}


def user_rows(count=200):
    ids = np.random.default_rng(1).permutation(count)
    return pa.table(
        {
            "uid": ids,
            "age": 1 + ids % 95,
            "marital": np.where(ids % 3 == 0, "married", "single"),
            "city": pa.array([f"city {i % 4}" for i in ids]),
            "ignored": np.arange(count),
        }
    )


def order_rows(count=200):
    ids = np.concatenate([np.full(i % 6, i) for i in range(count)])  # users with 0 to 5 rows
    return pa.table({"uid": ids, "amount": ids % 21, "kind": np.where(ids % 2 == 0, "a", "b")})


def test_every_user_sends_the_same_number_of_reports_in_the_order_of_ids():
    reports = SHOP.perturb(users=user_rows(), orders=order_rows(), max_rejected=1.0)
    assert reports["users"]["uid"].to_pylist() == list(range(200))
    assert reports["orders"]["uid"].to_pylist() == list(np.repeat(np.arange(200), 2))
    assert reports["orders"]["slot"].to_pylist() == [0, 1] * 200
    assert reports["users"].column_names == ["uid", "slot", "view", "seed", "y", "city"]
    assert reports["users"]["city"].to_pylist() == [f"city {i % 4}" for i in range(200)]
    summary = reports.summaries["orders"]
    assert (summary.rows, summary.users, summary.reports) == (order_rows().num_rows, 200, 400)
    assert summary.epsilon_per_report == pytest.approx(4 / 3)
    assert summary.rejected == {}
    assert repr(reports) == "Reports(users: 200 reports, orders: 400 reports)"


def test_any_frame_and_any_file_give_the_same_reports(tmp_path):
    rows = user_rows()
    pq.write_table(rows, tmp_path / "users.parquet")
    pacsv.write_csv(rows, tmp_path / "users.csv")
    dictionary = rows.set_column(2, "marital", rows["marital"].dictionary_encode())
    category = rows.to_pandas().astype({"marital": "category"})
    forms = [
        rows.to_pandas(),
        category,
        pl.from_arrow(rows),
        dictionary,
        tmp_path / "users.parquet",
        str(tmp_path / "users.csv"),
    ]
    expected = SHOP.perturb(users=rows, source=SeededSource(3), **SEEDED)["users"]
    for form in forms:
        reports = SHOP.perturb(users=form, source=SeededSource(3), **SEEDED)["users"]
        assert reports.select(["view", "seed", "y"]).equals(expected.select(["view", "seed", "y"]))


def test_no_name_of_a_table_leads_to_the_rows_of_another():
    tables = [dn.Table(name, a=dn.Categorical("x", "y")) for name in ("t", "t_given", "given_rows_t", "rows_t")]
    exact = dn.Collection(*tables, epsilon=math.inf, design="mg")
    rows = {
        table.name: pa.table({"uid": np.arange(number + 1), "a": ["x" if number % 2 else "y"] * (number + 1)})
        for number, table in enumerate(tables)
    }
    reports = exact.perturb(**rows, simulation=True)
    for number, table in enumerate(tables):
        assert reports[table.name]["y"].to_pylist() == [0 if number % 2 else 1] * (number + 1)


def test_text_ids_and_other_key_names():
    rows = user_rows().set_column(0, "name", pa.array([f"user {i}" for i in range(200)]))
    reports = SHOP.perturb(users=rows, key="name")["users"]
    assert reports["uid"].to_pylist() == sorted(f"user {i}" for i in range(200))


def test_rows_without_a_place_are_counted_by_reason_and_never_by_absence():
    rows = pa.table(
        {
            "uid": [1, 2, 3, 4, 5, 5, None],
            "age": [30, 200, None, 40, 50, 60, 70],
            "marital": ["single", "single", "single", "divorced", "married", "married", "married"],
            "city": ["x"] * 7,
        }
    )
    reports = SHOP.perturb(users=rows, max_rejected=1.0)
    assert reports["users"]["uid"].to_pylist() == [1, 2, 3, 4, 5]  # who has an odd row sends a report all the same
    summary = reports.summaries["users"]
    assert summary.rows == 7
    assert summary.rejected == {
        "outside the domain": 2,
        "missing": 1,
        "a second row of a user": 1,
        "without a user id": 1,
    }
    orders = pa.table({"uid": [1, 1, 9, None], "amount": [5, 99, 5, 5], "kind": ["a", "a", "a", "a"]})
    reports = SHOP.perturb(users=rows, orders=orders, max_rejected=1.0)
    assert reports["orders"].num_rows == 10
    assert reports.summaries["orders"].rejected == {
        "outside the domain": 1,
        "of an unknown user": 1,
        "without a user id": 1,
    }


def test_without_noise_the_reports_are_the_data():
    exact = dn.Collection(USERS, ORDERS, epsilon=math.inf, design="mg")
    users = user_rows()
    reports = exact.perturb(users=users, orders=order_rows(), source=SeededSource(5), **SEEDED)
    order = np.argsort(users["uid"].to_numpy())
    age, marital = users["age"].to_numpy()[order] - 1, (users["marital"].to_numpy(False)[order] == "single").astype(int)
    assert reports["users"]["y"].to_pylist() == (age * 2 + marital).tolist()
    # Orders: cell (amount, kind, weight); the weight is up with probability min(rows, 3)/3, and never without rows.
    ids = reports["orders"]["uid"].to_numpy()
    y = reports["orders"]["y"].to_numpy()
    heavy, cells = y % 2, y // 2
    rows = ids % 6
    assert not heavy[rows == 0].any()
    assert heavy[rows >= 3].all()
    assert 0.2 < heavy[rows == 1].mean() < 0.5
    real = rows > 0
    assert (cells[real] == ((ids % 21) * 2 + ids % 2)[real]).all()


def test_truncation_samples_rows_evenly_also_beyond_many():
    exact = dn.Collection(dn.Table("orders", many=3, amount=dn.Ordinal(0, 9)), epsilon=math.inf, design="mg")
    n = 30_000
    rows = pa.table({"uid": np.repeat(np.arange(n), 10), "amount": np.tile(np.arange(10), n)})
    reports = exact.perturb(orders=rows, everyone=pa.table({"uid": np.arange(n)}), source=SeededSource(6), **SEEDED)
    y = reports["orders"]["y"].to_numpy()
    assert (y % 2 == 1).all()
    counts = np.bincount(y // 2, minlength=10)
    assert np.abs(counts - n / 10).max() < 6 * math.sqrt(n * 0.09)


def test_services_are_independent_and_a_folder_takes_one_table_at_a_time(tmp_path):
    out = tmp_path / "reports"
    SHOP.perturb(users=user_rows(), out=out)
    ids = pa.table({"uid": np.arange(200)})
    SHOP.perturb(orders=order_rows(), everyone=ids, out=out)
    assert sorted(path.name for path in out.iterdir()) == ["collection.json", "orders", "users"]
    database = dn.connect(out)
    assert database.collection == SHOP
    assert {name: store.rows for name, store in database.stores.items()} == {"users": 200, "orders": 400}
    assert database.refused == {"users": {}, "orders": {}}
    assert repr(database) == "Database(users: 200 reports, orders: 400 reports)"
    assert repr(dn.connect(SHOP.perturb(users=user_rows()))) == "Database(users: 200 reports)"


def test_refused_reports_are_counted_when_they_are_read(tmp_path):
    SHOP.perturb(users=user_rows(), out=tmp_path / "reports")
    path = tmp_path / "reports" / "users" / "part-0.parquet"
    table = pq.read_table(path)
    bad = table.set_column(3, table.schema.field("seed"), pa.array([5] * 200, pa.uint32()))
    pq.write_table(bad, path)
    database = dn.connect(tmp_path / "reports")
    assert 0 < database.refused["users"]["y or seed out of range"] < 200
    assert database.stores["users"].rows == 200 - database.refused["users"].total()
    assert "refused" in repr(database)
    path.write_bytes(b"broken")
    with pytest.raises(InvalidData, match="damaged"):
        dn.connect(tmp_path / "reports")
    path.unlink()
    with pytest.raises(InvalidData, match="no files"):
        dn.connect(tmp_path / "reports")
    with pytest.raises(BadInput, match=r"holds no collection\.json"):
        dn.connect(tmp_path)


def test_users_without_rows_must_be_known():
    with pytest.raises(InvalidParameter, match="everyone is missing"):
        SHOP.perturb(orders=order_rows())


def test_nothing_is_overwritten(tmp_path):
    out = tmp_path / "reports"
    SHOP.perturb(users=user_rows(), out=out)
    before = (out / "users" / "part-0.parquet").read_bytes()
    with pytest.raises(BadInput, match="spend ε again"):
        SHOP.perturb(users=user_rows(), out=out)
    with pytest.raises(BadInput, match="holds something else"):
        dn.Collection(USERS, epsilon=1.0).perturb(users=user_rows(), out=out)
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInput, match="holds something else"):
        SHOP.perturb(users=user_rows(), out=tmp_path / "mine")
    assert (out / "users" / "part-0.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "tables are missing"),
        ({"visits": user_rows()}, "table 'visits' is not in this collection"),
        ({"users": user_rows().drop_columns(["age"])}, "table 'users' lacks the column 'age'"),
        ({"users": user_rows(), "key": "id"}, "table 'users' lacks the column 'id'"),
        ({"users": "nowhere.parquet"}, "table 'users' cannot be read"),
        ({"users": user_rows().set_column(0, "uid", pa.array(np.arange(200.0)))}, "user ids must be integers or texts"),
        ({"users": user_rows().set_column(0, "uid", pa.array(np.arange(200), pa.uint64()))}, "they are UBIGINT"),
        ({"users": None}, "table 'users' cannot be read"),
        (
            {"users": user_rows(), "orders": order_rows().set_column(0, "uid", order_rows()["uid"].cast(pa.string()))},
            "integers in one table and texts in another",
        ),
    ],
)
def test_impossible_requests(arguments, message):
    with pytest.raises(BadInput, match=message):
        SHOP.perturb(**arguments)


def test_a_seeded_source_needs_the_word_simulation():
    with pytest.raises(SimulationOnly):
        SHOP.perturb(users=user_rows(), source=SeededSource(1))


VISITS = dn.Collection(dn.Table("visits", many=2, page=dn.Categorical("x", "y"), city=dn.Public()), epsilon=1.0)


def test_a_public_column_of_a_table_with_many_rows_belongs_to_the_user():
    everyone = pa.table({"uid": [1, 2, 3], "city": ["a", "b", "c"]})
    rows = pa.table({"uid": [1, 1, 3], "page": ["x", "y", "x"]})
    reports = VISITS.perturb(visits=rows, everyone=everyone)["visits"]
    assert reports["city"].to_pylist() == ["a", "b", "c"]  # also of the user without rows
    constant = rows.append_column("city", pa.array(["a", "a", "c"]))
    assert VISITS.perturb(visits=constant, everyone=everyone)["visits"].num_rows == 3
    varying = rows.append_column("city", pa.array(["a", "z", "c"]))
    with pytest.raises(InvalidData, match="varies between rows"):
        VISITS.perturb(visits=varying, everyone=everyone)
    with pytest.raises(InvalidData, match="would show which users have rows"):
        VISITS.perturb(visits=constant, everyone=pa.table({"uid": [1, 2, 3]}))
    twice = pa.table({"uid": [1, 1], "city": ["a", "b"]})
    with pytest.raises(InvalidData, match="varies between rows"):
        VISITS.perturb(visits=rows, everyone=twice)


def test_batches_hold_whole_users(monkeypatch):
    for module in (row_reading, user_batches):
        monkeypatch.setattr(module, "USER_BATCH_ROWS", 7)
    expected = Counter(np.repeat(np.arange(200), 2).tolist())
    reports = SHOP.perturb(users=user_rows(), orders=order_rows())
    assert Counter(reports["orders"]["uid"].to_pylist()) == expected
    assert reports.summaries["orders"].rows == order_rows().num_rows


def layout(reports):
    return [chunk.num_rows for chunk in reports.to_batches()]


def test_the_layout_of_reports_tells_nothing_about_rows(tmp_path, monkeypatch):
    for module in (row_reading, user_batches):
        monkeypatch.setattr(module, "USER_BATCH_ROWS", 50)
    monkeypatch.setattr(collecting, "BATCH_REPORTS", 40)
    monkeypatch.setattr(folder_writing, "GROUP_REPORTS", 64)
    everyone = pa.table({"uid": np.arange(200)})
    shapes = set()
    for number, heavy in enumerate((0, 1, 700)):
        ids = np.concatenate((np.arange(0, 200, 2), np.full(heavy, 5)))
        rows = pa.table({"uid": ids, "amount": np.zeros_like(ids), "kind": ["a"] * ids.size})
        memory = SHOP.perturb(orders=rows, everyone=everyone)["orders"]
        SHOP.perturb(orders=rows, everyone=everyone, out=tmp_path / str(number))
        file = pq.ParquetFile(tmp_path / str(number) / "orders" / "part-0.parquet")
        groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        shapes.add((tuple(layout(memory)), tuple(groups)))
        assert memory.num_rows == 400
    assert shapes == {((64,) * 6 + (16,), (64,) * 6 + (16,))}


def test_one_secure_source_never_draws_the_same_twice():
    source = dn.SecureSource()
    first, second = (SHOP.perturb(users=user_rows(), source=source)["users"] for _ in range(2))
    same = np.mean(first["seed"].to_numpy() == second["seed"].to_numpy())
    views = first["view"].to_numpy() == second["view"].to_numpy()
    assert same < 0.9
    assert views.mean() < 0.5


def test_one_odd_value_in_a_csv_file_spoils_its_own_row_only(tmp_path):
    lines = ["uid,age,marital,city"] + [f"{i},{1 + i % 95},single,Rome" for i in range(3000)]
    lines[10], lines[2900], lines[20] = "9,SECRET,single,Rome", "2899,n/a,single,Rome", "19,,single,Rome"
    (tmp_path / "users.csv").write_text("\n".join(lines) + "\n")
    reports = SHOP.perturb(users=tmp_path / "users.csv")
    assert reports.summaries["users"].rejected == {"of the wrong type": 2, "missing": 1}
    assert reports["users"]["uid"].to_pylist() == list(range(3000))


def test_types_in_csv_files_are_those_of_the_specification(tmp_path):
    from datetime import date, datetime

    table = dn.Table(
        "t",
        code=dn.Categorical("1", "2", ""),
        flag=dn.Categorical(True, False),
        number=dn.Categorical(10, 20),
        day=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 31)),
        hour=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 1, 23), "hour"),
    )
    exact = dn.Collection(table, epsilon=math.inf, design="mg")
    rows = ["b,2,false,20,2020-01-03,2020-01-01 05:30:00", "a,,true,10,2020-01-01,2020-01-01 00:00:00"]
    (tmp_path / "t.csv").write_text("\n".join(["uid,code,flag,number,day,hour", *rows]) + "\n")
    reports = exact.perturb(t=tmp_path / "t.csv", simulation=True)
    assert reports.summaries["t"].rejected == {}
    assert reports["t"]["y"].to_pylist() == [2 * 2 * 2 * 31 * 24, (((1 * 2 + 1) * 2 + 1) * 31 + 2) * 24 + 5]


@pytest.mark.parametrize(
    ("ages", "kind"),
    [
        ([1, "SECRET", 3], "string"),
        (["SECRET"] * 3, "string"),
        ([True, False, True], "bool"),
        ([{"SECRET": 1}] * 3, "struct"),
    ],
)
def test_a_column_of_the_wrong_type_ends_the_run_without_showing_a_value(ages, kind):
    # Counting every row as odd would replace everybody's data by noise because of one person's value.
    frame = pd.DataFrame({"uid": [1, 2, 3], "age": ages, "marital": ["single"] * 3, "city": ["x"] * 3})
    with pytest.raises(InvalidData, match=f"column 'age' of table 'users' is of type {kind}") as caught:
        SHOP.perturb(users=frame)
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_ids_of_the_wrong_type_do_not_show_what_they_are_made_of():
    frame = {"uid": [{"SECRET": 1}], "age": [1], "marital": ["single"], "city": ["x"]}
    with pytest.raises(InvalidData, match=r"they are STRUCT\.") as caught:
        SHOP.perturb(users=frame)
    assert "SECRET" not in str(caught.value)


def test_many_reports_per_user_go_in_small_batches(monkeypatch):
    monkeypatch.setattr(collecting, "BATCH_REPORTS", 40)
    seen = []
    original = collecting.bulk.randomise

    def spy(table, design, codes, weights, source, *more):
        seen.append(codes[0].size)
        return original(table, design, codes, weights, source, *more)

    monkeypatch.setattr(collecting.bulk, "randomise", spy)
    table = dn.Table("orders", many=20, tau=20, amount=dn.Ordinal(0, 9))
    rows = pa.table({"uid": np.arange(10), "amount": np.arange(10)})
    reports = dn.Collection(table, epsilon=9.0).perturb(orders=rows, everyone=pa.table({"uid": np.arange(10)}))
    assert reports["orders"].num_rows == 200
    assert max(seen) <= 40


def test_no_rows_at_all():
    empty = user_rows().slice(0, 0)
    reports = SHOP.perturb(users=empty, orders=order_rows().slice(0, 0))
    assert (reports["users"].num_rows, reports["orders"].num_rows) == (0, 0)


def test_a_table_without_rows_does_not_say_which_type_ids_and_columns_are(tmp_path):
    named = user_rows().set_column(0, "uid", pa.array([f"user {i}" for i in range(200)]))
    (tmp_path / "orders.csv").write_text("uid,amount,kind\n")
    pd.DataFrame({"uid": [], "amount": [], "kind": []}, dtype=object).to_parquet(tmp_path / "orders.parquet")
    for orders in ({"uid": [], "amount": [], "kind": []}, tmp_path / "orders.csv", tmp_path / "orders.parquet"):
        for users in (named, user_rows()):
            reports = SHOP.perturb(users=users, orders=orders)
            assert reports["orders"]["uid"].type == reports["users"]["uid"].type
            assert reports["orders"].num_rows == 400
            assert reports.summaries["orders"].rejected == {}
    empty = {"uid": [], "age": [], "marital": [], "city": []}
    nobody = SHOP.perturb(users=empty, orders=order_rows(), max_rejected=1.0)
    assert repr(nobody) == "Reports(users: 0 reports, orders: 0 reports)"
    assert nobody.summaries["orders"].rejected == {"of an unknown user": order_rows().num_rows}


KILLED = """
import sys, pyarrow as pa, numpy as np, deniable as dn
from deniable.engines.collecting import sorted_rows as reading
reading.USER_BATCH_ROWS = 1000
table = dn.Table("users", age=dn.Ordinal(0, 9))
rows = pa.table({"uid": np.arange(2_000_000), "age": np.zeros(2_000_000, dtype=int)})
print("started", flush=True)
dn.Collection(table, epsilon=1.0).perturb(users=rows, out=sys.argv[1])
"""


def test_a_killed_run_leaves_no_half_dataset(tmp_path):
    out = tmp_path / "reports"
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(out)], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"started\n"
    partial = []
    while not partial and process.poll() is None:  # until it is in the middle of writing
        partial = [path for path in tmp_path.glob(".reports.partial/users/*.parquet") if path.stat().st_size > 0]
        time.sleep(0.01)
    assert process.poll() is None
    table = dn.Table("users", age=dn.Ordinal(0, 9))
    with pytest.raises(Failure, match=r"the folder 'reports' is in use by another process"):
        dn.Collection(table, epsilon=1.0).perturb(users=pd.DataFrame({"uid": [1], "age": [3]}), out=out)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not out.exists()
    assert (tmp_path / ".reports.partial").exists()
    again = dn.Collection(table, epsilon=1.0).perturb(users=pd.DataFrame({"uid": [1], "age": [3]}), out=out)
    assert again.summaries["users"].reports == 1
    assert [path.name for path in tmp_path.iterdir()] == ["reports"]


def test_reports_through_a_link_are_written_where_it_leads(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "real")
    table = dn.Table("users", age=dn.Ordinal(0, 9))
    dn.Collection(table, epsilon=1.0).perturb(users={"uid": [1], "age": [3]}, out=tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "users").is_dir()


def test_seeded_simulations_repeat_whatever_order_the_rows_are_in():
    random = np.random.default_rng(3)
    orders = dn.Table("orders", many=4, amount=dn.Ordinal(0, 9), kind=dn.Categorical("a", "b"))
    collection = dn.Collection(orders, epsilon=2.0)
    uid, amount = random.integers(0, 500, 3_000), random.integers(0, 10, 3_000)
    kind = random.choice(["a", "b"], 3_000)
    made = []
    for order in (np.arange(3_000), random.permutation(3_000), random.permutation(3_000)):
        frame = {"uid": uid[order], "amount": amount[order], "kind": kind[order]}
        reports = collection.perturb(
            orders=frame, everyone={"uid": range(500)}, source=dn.SeededSource(1), simulation=True
        )
        made.append(reports.tables["orders"])
    assert made[0].equals(made[1])
    assert made[0].equals(made[2])


def test_ids_in_csv_files_that_are_not_written_like_integers_are_texts(tmp_path):
    table = dn.Table("users", age=dn.Ordinal(0, 9))
    other = dn.Table("others", age=dn.Ordinal(0, 9))
    (tmp_path / "users.csv").write_text("uid,age\n007,1\n7,2\n12,3\n")
    (tmp_path / "others.csv").write_text("uid,age\n7,1\n12,2\n")
    shop = dn.Collection(table, other, epsilon=1.0)
    reports = shop.perturb(users=tmp_path / "users.csv", others=tmp_path / "others.csv")
    assert sorted(reports["users"]["uid"].to_pylist()) == ["007", "12", "7"]
    assert sorted(reports["others"]["uid"].to_pylist()) == ["12", "7"]  # one type for all
    alone = shop.perturb(others=tmp_path / "others.csv")
    assert sorted(alone["others"]["uid"].to_pylist()) == [7, 12]
    beside = shop.perturb(users={"uid": ["ann", "7"], "age": [1, 2]}, others=tmp_path / "others.csv")
    assert sorted(beside["others"]["uid"].to_pylist()) == ["12", "7"]
