"""PEP 249 and SQLAlchemy over folders and collectors."""

import datetime
import inspect
import threading

import pandas
import polars
import pytest
import sqlalchemy
import uvicorn

import deniable as dn
from asked_shop import opened
from deniable import dbapi
from deniable.service.application import application

COUNT = "SELECT sex, COUNT(*) AS n FROM users GROUP BY sex"
NAMES = ["sex", "n", "n_stderr", "n_low", "n_high"]


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """(address, key, folder) of a collector on a port."""
    collector, keys = opened(tmp_path_factory.mktemp("dbapi") / "collected")
    server = uvicorn.Server(uvicorn.Config(application(collector), port=0, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"127.0.0.1:{port}", keys["ask"], collector.folder.path
    server.should_exit = True
    thread.join()


@pytest.fixture(scope="module")
def database(served):
    return dn.connect(served[2])


@pytest.fixture(params=["database", "folder", "collector"])
def connection(request, served, database):
    address, key, folder = served
    targets = {"database": database, "folder": str(folder), "collector": f"http://{address}"}
    with dbapi.connect(targets[request.param], key=key) as opened_connection:
        yield opened_connection


def test_the_module_has_everything_that_pep_249_asks_for():
    assert (dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle) == ("2.0", 2, "qmark")
    assert issubclass(dbapi.ProgrammingError, dbapi.DatabaseError)
    for name in ("Data", "Operational", "Integrity", "Internal", "Programming", "NotSupported"):
        assert issubclass(getattr(dbapi, f"{name}Error"), dbapi.DatabaseError)
        assert getattr(dbapi.Connection, f"{name}Error") is getattr(dbapi, f"{name}Error")
    assert issubclass(dbapi.DatabaseError, dbapi.Error)
    assert issubclass(dbapi.InterfaceError, dbapi.Error)
    assert not issubclass(dbapi.Warning, dbapi.Error)
    assert dbapi.Date(2026, 1, 31) == datetime.date(2026, 1, 31)
    assert dbapi.TimestampFromTicks(86400.0).date() == dbapi.DateFromTicks(86400.0)
    assert isinstance(dbapi.TimeFromTicks(0.0), datetime.time)
    assert dbapi.Binary(b"a") == b"a"
    members = {"close", "execute", "executemany", "fetchone", "fetchmany", "fetchall", "setinputsizes", "setoutputsize"}
    assert members <= {name for name, _ in inspect.getmembers(dbapi.Cursor)}
    assert {"close", "commit", "rollback", "cursor"} <= {name for name, _ in inspect.getmembers(dbapi.Connection)}


def test_rows_come_one_by_one_in_parts_or_together(connection, database):
    cursor = connection.cursor()
    with pytest.raises(dbapi.Error, match="nothing was asked yet"):
        cursor.fetchone()
    assert cursor.execute(COUNT) is cursor
    assert [column[0] for column in cursor.description] == NAMES
    assert all(len(column) == 7 for column in cursor.description)
    assert cursor.description[0][1] == dbapi.STRING
    assert all(column[1] == dbapi.NUMBER for column in cursor.description[1:])
    assert cursor.description[0][1] != dbapi.NUMBER
    assert cursor.rowcount == 2
    first = cursor.fetchone()
    assert first[0] == "f"
    assert first[1] == pytest.approx(database.sql(COUNT).answers["n"][0].value)
    assert [row[0] for row in cursor.fetchmany(5)] == ["m"]
    assert cursor.fetchone() is None
    assert cursor.fetchall() == cursor.fetchmany() == []
    assert [row[0] for row in cursor.execute(COUNT)] == ["f", "m"]
    cursor.execute(COUNT)
    assert len(cursor.fetchmany()) == cursor.arraysize == 1
    assert len(cursor.fetchall()) == 1


def test_parameters_are_constants(connection, database):
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM users WHERE age < ? AND sex = ?", (50, "f"))
    plain = database.sql("SELECT COUNT(*) AS n FROM users WHERE age < 50 AND sex = 'f'").scalar()
    assert cursor.fetchone()[0] == pytest.approx(plain.value)
    cursor.execute("SELECT day, COUNT(*) AS n FROM orders WHERE day <= ? GROUP BY day", [datetime.date(2026, 1, 2)])
    assert [row[0] for row in cursor.fetchall()] == [datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)]
    cursor.execute("SELECT COUNT(*) AS n FROM users WHERE sex = ?", ["f' OR 'a' = 'a"])
    assert cursor.fetchone()[0] == 0.0
    for wrong in ([], [1, 2], {"a": 1}, "a", [object()]):
        with pytest.raises(dbapi.ProgrammingError):
            cursor.execute("SELECT COUNT(*) AS n FROM users WHERE age < ?", wrong)


def test_notes_are_messages_and_refusals_are_errors(connection):
    cursor = connection.cursor()
    cursor.execute("SELECT COUNT(*) AS n FROM users WHERE age > 400")
    ((kind, words),) = cursor.messages
    assert kind is dbapi.Warning
    assert "400" in words
    with pytest.raises(dbapi.ProgrammingError, match="rows of single people cannot be shown"):
        cursor.execute("SELECT * FROM users")
    with pytest.raises(dbapi.NotSupportedError, match="execute for each"):
        cursor.executemany(COUNT, [])
    with pytest.raises(dbapi.InterfaceError, match="nothing was asked"):
        cursor.fetchall()
    connection.commit()
    connection.rollback()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1)
    cursor.close()
    with pytest.raises(dbapi.InterfaceError, match="cursor is closed"):
        cursor.execute(COUNT)


def test_a_closed_connection_is_refused(served):
    closed = dbapi.connect(served[2])
    cursor = closed.cursor()
    closed.close()
    for use in (closed.cursor, closed.commit, closed.rollback, closed.tables, lambda: cursor.execute(COUNT)):
        with pytest.raises(dbapi.InterfaceError, match="connection is closed"):
            use()


def test_options_and_wrong_targets(served, database, tmp_path):
    address, key, _ = served
    for target in (database, f"http://{address}"):
        plain = dbapi.connect(target, key=key, error_columns=False).cursor().execute(COUNT)
        assert [column[0] for column in plain.description] == NAMES[:2]
        narrow = dbapi.connect(target, key=key, confidence=0.5).cursor().execute(COUNT).fetchone()
        assert narrow[3] == pytest.approx(database.sql(COUNT, confidence=0.5).answers["n"][0].interval[0])
    with pytest.raises(dbapi.ProgrammingError, match="confidence must lie"):
        dbapi.connect(database, confidence=7)
    with pytest.raises(dbapi.InterfaceError, match="option is unknown"):
        dbapi.connect(database, trust=1)
    with pytest.raises(dbapi.Error):
        dbapi.connect(tmp_path / "nothing")
    with pytest.raises(dbapi.OperationalError, match="scope ask"):
        dbapi.connect(f"http://{address}", key="dnk_wrong").cursor().execute(COUNT)
    with pytest.raises(dbapi.OperationalError, match="does not answer"):
        dbapi.connect("http://127.0.0.1:9").tables()


@pytest.fixture(params=["folder", "collector"])
def engine(request, served):
    address, key, folder = served
    made = sqlalchemy.create_engine(
        f"deniable:///{folder}" if request.param == "folder" else f"deniable+http://:{key}@{address}"
    )
    yield made
    made.dispose()


def test_sqlalchemy_reflects_and_asks(engine, database):
    inspected = sqlalchemy.inspect(engine)
    assert inspected.get_table_names() == ["users", "orders"]
    assert inspected.has_table("users")
    assert not inspected.has_table("nobody")
    assert inspected.get_view_names() == inspected.get_schema_names() == []
    day = inspected.get_columns("orders")[2]
    assert (day["name"], str(day["type"]), day["comment"]) == ("day", "DATE", "private: 2026-01-01 to 2026-03-31")
    assert "randomised" in inspected.get_table_comment("users")["text"]
    with pytest.raises(sqlalchemy.exc.NoSuchTableError):
        inspected.get_columns("nobody")
    users = sqlalchemy.Table("users", sqlalchemy.MetaData(), autoload_with=engine)
    assert [column.name for column in users.columns] == ["uid", "age", "sex"]
    question = (
        sqlalchemy.select(users.c.sex, sqlalchemy.func.count().label("n"))
        .where(users.c.age.between(20, 60)).group_by(users.c.sex).order_by(users.c.sex).limit(5)
    )  # fmt: skip
    with engine.connect() as asking:
        rows = asking.execute(question).all()
    plain = database.sql("SELECT sex, COUNT(*) AS n FROM users WHERE age BETWEEN 20 AND 60 GROUP BY sex")
    assert [row.n for row in rows] == pytest.approx([estimate.value for estimate in plain.answers["n"]])


def test_frames_read_answers(engine, database):
    expected = database.sql(COUNT).to_pandas()
    frame = pandas.read_sql(COUNT, engine)
    pandas.testing.assert_frame_equal(frame, expected, check_dtype=False)
    assert polars.read_database(COUNT, engine).columns == NAMES
    assert polars.read_database(COUNT, engine.raw_connection().driver_connection.cursor()).height == 2


def test_an_address_holds_options(served):
    engine = sqlalchemy.create_engine(f"deniable:///{served[2]}?error_columns=false&confidence=0.9&weights=greedy")
    assert list(pandas.read_sql(COUNT, engine).columns) == NAMES[:2]
    engine.dispose()
