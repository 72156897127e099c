"""A database asks its engine, whichever that is, and everything that is counted once is asked once."""

import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.engine import Engine
from deniable.engines.local.opening import open_local
from deniable.errors import InvalidParameter
from recording_engine import RecordingEngine

USERS = dn.Table("users", age=dn.Ordinal(1, 20), city=dn.Public())
MANY_NUMBERS = "SELECT age, COUNT(*) AS n FROM users GROUP BY age"


def reports(**settings):
    frame = {"uid": range(400), "age": [1 + number % 20 for number in range(400)], "city": ["Rome", "Oslo"] * 200}
    collection = dn.Collection(USERS, epsilon=2.0, **settings)
    return collection.perturb(users=frame, source=dn.SeededSource(1), simulation=True)


def recorded(**settings):
    return RecordingEngine(open_local(reports(**settings)))


def test_any_class_with_the_members_is_an_engine():
    engine = recorded()
    assert isinstance(engine, Engine)
    database = dn.connect(engine=engine)
    assert repr(database) == repr(dn.connect(reports())) == "Database(users: 400 reports; simulation)"
    assert str(database.sql(MANY_NUMBERS)) == str(dn.connect(reports()).sql(MANY_NUMBERS))
    assert database.explain(MANY_NUMBERS).reports == {"users": 400}
    database.close()
    assert engine.asked[-1] == "close"


def test_reports_without_noise_are_a_simulation_whatever_their_engine_says():
    collection = dn.Collection(USERS, epsilon=float("inf"))
    exact = collection.perturb(users={"uid": [1, 2], "age": [3, 4], "city": ["Rome", "Oslo"]}, simulation=True)
    engine = RecordingEngine(open_local(exact))
    engine.simulation = False
    database = dn.connect(engine=engine)
    assert database.simulation
    assert database.sql("SELECT COUNT(*) FROM users").simulation


def test_a_class_is_not_an_engine():
    with pytest.raises(InvalidParameter, match="must be a SparkSession"):
        dn.connect(engine=RecordingEngine)


def test_an_engine_is_asked_for_what_is_needed_and_counts_once():
    engine = recorded()
    database = dn.connect(engine=engine)
    database.sql("SELECT COUNT(*) FROM users WHERE age < 7")
    assert engine.asked == ["moments"]
    engine.asked.clear()
    for _ in range(3):
        database.sql(MANY_NUMBERS)
        database.sql("SELECT COUNT(*) FROM users WHERE age < 7")
    assert engine.asked == ["cell pairs of users"]


def test_a_grid_asks_once_how_smooth_the_data_is():
    engine = recorded(design="grid", grids={"users": [dn.GridView({"age": 4})]})
    database = dn.connect(engine=engine)
    for _ in range(2):
        database.sql("SELECT COUNT(*) FROM users WHERE age < 8")
    assert engine.asked.count("cell counts of users") == 1


def test_dimensions_reach_the_engine():
    cities = pa.table({"city": ["Rome", "Oslo"], "north": [False, True]})
    text = "SELECT COUNT(*) AS n FROM users JOIN cities USING (city) WHERE north"
    database = dn.connect(engine=recorded(), dimensions={"cities": cities})
    assert database.sql(text).scalar().value == 200


def test_an_engine_holds_its_reports_already():
    with pytest.raises(InvalidParameter, match="reports are held by the engine already"):
        dn.connect(reports(), engine=recorded())


def test_something_else_is_not_an_engine():
    with pytest.raises(InvalidParameter, match="engine must be a SparkSession"):
        dn.connect(reports(), engine=object())
    assert not isinstance(object(), Engine)
