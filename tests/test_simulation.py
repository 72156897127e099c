"""What protects nobody is called a simulation, carries a mark wherever it goes, and never mixes with a release."""

import json
import math
from itertools import product

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command_line import run
from deniable.client import Client, ToPLClient
from deniable.engines.collecting.collected_reports import Reports
from deniable.errors import InvalidData, InvalidParameter, SimulationOnly
from deniable.mechanisms import (
    DiscreteLaplace,
    Hybrid,
    LocalHashing,
    NoisyMax,
    PAKThreshold,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SmoothPercentile,
    SquareWave,
    StochasticRounding,
)
from deniable.streams import (
    NME,
    PAK,
    FixedPercentile,
    Flat,
    Hc16,
    Perturber,
    Released,
    SmoothHc16,
    ToPL,
    ToPLServer,
    ToPS,
)
from deniable.streams.central.threshold import PAKPercentile, PaperScore, PredictedError, Situation, SmoothThreshold
from deniable.streams.structure.state_values import seal
from deniable.tables.specification.runs import SPECIFICATION_FILE

USERS = dn.Table("users", age=dn.Ordinal(0, 24))
PETS = dn.Table("pets", kind=dn.Categorical("cat", "dog"))
SHOP = dn.Collection(USERS, PETS, epsilon=2.0)
EXACT = dn.Collection(USERS, PETS, epsilon=math.inf, design="mg")
PEOPLE = {"uid": list(range(40)), "age": [7] * 40}
ANIMALS = {"uid": list(range(40)), "kind": ["cat"] * 40}
SEEDED = {"source": dn.SeededSource(1), "simulation": True}
NOTE = "simulation: no privacy"
QUESTION = "SELECT COUNT(*) AS n FROM users"
WITHOUT_NOISE = [math.inf, 65.0, 699.0]


# An ε without noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", WITHOUT_NOISE)
@pytest.mark.parametrize(
    ("make", "values"),
    [
        (lambda epsilon: RandomizedResponse(epsilon, 4), [1, 2]),
        (lambda epsilon: LocalHashing(epsilon, 4), [1, 2]),
        (StochasticRounding, [0.0, 1.0]),
        (Piecewise, [0.0, 1.0]),
        (Hybrid, [0.0, 1.0]),
        (SquareWave, [0.0, 1.0]),
        (lambda epsilon: DiscreteLaplace(epsilon, 100), [1, 2]),
        (lambda epsilon: NoisyMax(epsilon, 100), [1, 2]),
        (lambda epsilon: PermuteAndFlip(epsilon, 100), [1, 2]),
        (lambda epsilon: SmoothPercentile(epsilon, 10, 0.5), [1, 2]),
        (lambda epsilon: PAKThreshold(epsilon, 10), [1, 2]),
    ],
)
def test_mechanisms_refuse_an_epsilon_without_noise_in_a_release(make, values, epsilon):
    try:
        mechanism = make(epsilon)
    except InvalidParameter:  # some have no law for a huge ε; for an infinite one all have
        assert epsilon < math.inf
        return
    single = values if isinstance(mechanism, (NoisyMax, PermuteAndFlip, SmoothPercentile)) else values[0]
    with pytest.raises(SimulationOnly, match="lets the data out as they are"):
        mechanism.perturb(values)
    with pytest.raises(SimulationOnly, match="lets the data out as they are"):
        mechanism.perturb_one(single)
    if math.isinf(epsilon):
        mechanism.perturb(values, simulation=True)
        mechanism.perturb_one(single, simulation=True)
        mechanism.perturb_one(single, randbelow=dn.SeededSource(1).simulated_randbelow)


@pytest.mark.parametrize("epsilon", [math.inf, 2 * 65.0])
def test_a_device_does_not_send_its_rows(epsilon, tmp_path):
    shop = dn.Collection(USERS, PETS, epsilon=epsilon, design="mg")
    shop.save(tmp_path / "shop.toml")
    loaded = dn.Collection.load(tmp_path / "shop.toml")
    for refused in (loaded.client, lambda: Client(loaded), lambda: loaded.gather([])):
        with pytest.raises(SimulationOnly):
            refused()
    for tables in ({"users": PEOPLE}, {"users": PEOPLE, "out": tmp_path / "reports"}):
        with pytest.raises(SimulationOnly):
            loaded.perturb(**tables)
    assert not (tmp_path / "reports").exists()
    simulated = loaded.client(simulation=True)
    assert simulated.simulation
    assert simulated.report("users", {"age": 7}).y == 7


def test_the_most_telling_report_decides():
    # Of ε = 66 one table takes 65: its reports are the rows.
    uneven = dn.Collection(USERS, PETS, epsilon=66.0, shares={"users": 65, "pets": 1})
    with pytest.raises(SimulationOnly):
        uneven.perturb(pets=ANIMALS)
    even = dn.Collection(USERS, PETS, epsilon=66.0)
    assert not even.perturb(pets=ANIMALS).simulation


@pytest.mark.parametrize("epsilon", [math.inf, 65.0])
@pytest.mark.parametrize("kind", [ToPS, PAK, NME, Hc16, SmoothHc16, Flat])
def test_publishers_refuse_an_epsilon_without_noise(kind, epsilon):
    with pytest.raises(SimulationOnly):
        kind(epsilon, 100, warmup=10, horizon=100)
    with pytest.raises(SimulationOnly):
        kind(epsilon, 100, warmup=10, horizon=100, key=bytes(32))
    assert kind(math.inf, 100, warmup=10, horizon=100, simulation=True).simulation


@pytest.mark.parametrize("epsilon", [math.inf, 65.0])
def test_parts_of_streams_refuse_an_epsilon_without_noise(epsilon):
    perturber = Perturber(epsilon, 100, 64)
    for refused in (
        lambda: perturber.perturb([1, 2]),
        perturber.begin,
        lambda: ToPLClient(epsilon, 100),
        lambda: ToPLServer(epsilon, 100),
        lambda: ToPL(epsilon, 100),
    ):
        with pytest.raises(SimulationOnly):
            refused()
    facts = Situation(100, 50, 1000, 1.0, 1.0, 0.5)
    values = np.arange(50)
    for rule in (PredictedError(), PaperScore(), SmoothThreshold(), PAKPercentile()):
        with pytest.raises(SimulationOnly):
            rule.choose(values, facts, math.inf, dn.SecureSource())
        with pytest.raises(SimulationOnly):
            rule.choose(values, facts, 1.0, dn.SeededSource(1))
    with pytest.raises(SimulationOnly, match="a value of the data"):
        FixedPercentile(0.5).choose(values, facts, 1.0, dn.SecureSource())


# Tables: the mark -----------------------------------------------------------------------------------------------------


def says(result, *, simulation):
    assert result.simulation == simulation
    texts = [str(result), result._repr_html_()]
    assert [NOTE in text for text in texts] == [simulation] * 2
    assert (b"deniable.simulation" in (result.to_arrow().schema.metadata or {})) == simulation


@pytest.mark.parametrize(("collection", "how"), [(SHOP, SEEDED), (EXACT, {"simulation": True})])
def test_what_a_simulation_makes_says_so(collection, how, tmp_path):
    reports = collection.perturb(users=PEOPLE, pets=ANIMALS, **how)
    written = collection.perturb(users=PEOPLE, pets=ANIMALS, out=tmp_path / "reports", **how)
    for made in (reports, written):
        assert made.simulation
        assert repr(made).endswith("; simulation)")
        assert NOTE in made._repr_html_()
    for path in (tmp_path / "reports").glob("*/*.parquet"):
        assert pq.read_schema(path).metadata[b"deniable.simulation"] == b"true"
    for given, limit in ((reports, 2**30), (tmp_path / "reports", 2**30), (tmp_path / "reports", 0)):
        database = dn.connect(given, memory_limit=limit)
        assert repr(database) == "Database(users: 40 reports, pets: 40 reports; simulation)"
        assert NOTE in database._repr_html_()
        says(database.sql(QUESTION), simulation=True)
        says(database.sql(QUESTION, clip=True), simulation=True)


def test_a_release_says_nothing_of_the_kind(tmp_path):
    written = SHOP.perturb(users=PEOPLE, out=tmp_path / "reports")
    assert not written.simulation
    assert (tmp_path / "reports" / SPECIFICATION_FILE).read_text() == SHOP.to_json() + "\n"
    for given in (tmp_path / "reports", SHOP.perturb(users=PEOPLE)):
        database = dn.connect(given)
        assert repr(database) == "Database(users: 40 reports)"
        says(database.sql(QUESTION), simulation=False)


def test_the_mark_is_no_part_of_the_specification(tmp_path):
    SHOP.perturb(users=PEOPLE, out=tmp_path / "reports", **SEEDED)
    path = tmp_path / "reports" / SPECIFICATION_FILE
    assert json.loads(path.read_text()) == {**SHOP.to_dict(), "simulation": True}
    loaded = dn.Collection.load(path)
    assert loaded == SHOP
    assert loaded.to_json() == SHOP.to_json()
    assert dn.connect(tmp_path / "reports").collection.sha256 == SHOP.sha256
    for entry, message in (({"simulation": False}, "must be true"), ({"pretence": True}, "pretence is not a field")):
        path.write_text(json.dumps({**SHOP.to_dict(), **entry}))
        with pytest.raises(InvalidParameter, match=message):
            dn.connect(tmp_path / "reports")


def test_a_grid_answers_consistently_and_says_so_too():
    shop = dn.Collection(USERS, epsilon=2.0, design="grid")
    database = dn.connect(shop.perturb(users=PEOPLE, **SEEDED))
    says(database.sql("SELECT COUNT(*) FROM users WHERE age < 9", postprocess="consistent"), simulation=True)


@pytest.mark.parametrize("first", [True, False])
def test_a_folder_takes_tables_of_its_own_kind_only(first, tmp_path):
    kinds = {True: SEEDED, False: {}}
    SHOP.perturb(users=PEOPLE, out=tmp_path / "reports", **kinds[first])
    with pytest.raises(InvalidData, match="a simulation and a release cannot be mixed"):
        SHOP.perturb(pets=ANIMALS, out=tmp_path / "reports", **kinds[not first])
    SHOP.perturb(pets=ANIMALS, out=tmp_path / "reports", **kinds[first])
    assert dn.connect(tmp_path / "reports").simulation == first


@pytest.mark.parametrize("limit", [0, 2**30])
def test_tables_of_both_kinds_are_not_read_together(limit, tmp_path):
    mixed = "a simulation and a release cannot be mixed"
    SHOP.perturb(users=PEOPLE, pets=ANIMALS, out=tmp_path / "release")
    SHOP.perturb(users=PEOPLE, out=tmp_path / "simulation", **SEEDED)
    (tmp_path / "release" / "users").rename(tmp_path / "kept")
    (tmp_path / "simulation" / "users").rename(tmp_path / "release" / "users")
    with pytest.raises(InvalidData, match=mixed):
        dn.connect(tmp_path / "release", memory_limit=limit)
    (tmp_path / "release" / "users" / "part-0.parquet").rename(tmp_path / "kept" / "part-1.parquet")
    (tmp_path / "release" / "users").rmdir()
    (tmp_path / "kept").rename(tmp_path / "release" / "users")  # now two files of one table differ
    with pytest.raises(InvalidData, match=mixed):
        dn.connect(tmp_path / "release", memory_limit=limit)


def test_taking_the_mark_out_of_collection_json_does_not_make_a_release(tmp_path):
    SHOP.perturb(users=PEOPLE, out=tmp_path / "reports", **SEEDED)
    (tmp_path / "reports" / SPECIFICATION_FILE).write_text(SHOP.to_json())
    with pytest.raises(InvalidData, match=r"'collection.json' is a release, 'users' is a simulation"):
        dn.connect(tmp_path / "reports")


def test_tables_in_memory_of_both_kinds_are_not_put_together():
    release, simulation = SHOP.perturb(users=PEOPLE), SHOP.perturb(pets=ANIMALS, **SEEDED)
    with pytest.raises(InvalidData, match="cannot be mixed"):
        Reports(SHOP, {**release.tables, **simulation.tables}, {})


# Devices --------------------------------------------------------------------------------------------------------------


def sent(client, uid):
    return client.report("users", {"age": 7}).to_json(uid, "users")


def test_reports_of_simulated_devices_are_not_taken_for_others():
    simulated = Client(SHOP, randbelow=dn.SeededSource(1).simulated_randbelow)
    assert "simulation" in repr(simulated)
    lines = [sent(simulated, 1), sent(SHOP.client(simulation=True), 2), sent(SHOP.client(), 3)]
    release, simulation = SHOP.gather(lines), SHOP.gather(lines, simulation=True)
    assert release["users"]["uid"].to_pylist() == [3]
    assert release.summaries["users"].rejected == {"of a simulation": 2}
    assert simulation["users"]["uid"].to_pylist() == [1, 2]
    assert simulation.summaries["users"].rejected == {"of a release, not of a simulation": 1}
    assert (release.simulation, simulation.simulation) == (False, True)


def test_a_memory_keeps_simulations_apart_from_what_was_sent():
    memory, stream = {}, {}
    tags = {SHOP.client(memory, simulation=simulation).report("users", {"age": 7}).tag for simulation in (True, False)}
    assert tags == {SHOP.tag("users"), SHOP.tag("users") ^ (2**64 - 1)}
    first = ToPLClient(1.0, 500, stream, simulation=True).report(7)
    assert ToPLClient(1.0, 500, stream).report(7).tag == first.tag ^ 0xFFFF


def test_a_server_of_streams_takes_reports_of_its_own_kind_only(tmp_path):
    theta = {"theta": 50.0}
    for simulation, device in product((True, False), repeat=2):
        server = ToPLServer(1.0, 100, **theta, simulation=simulation)
        report = ToPLClient(1.0, 100, simulation=device).report(7, **theta)
        table = pa.table({"report": pa.array([report.to_bytes()], pa.binary(16))})
        taken = [server.push(report) is not None, server.push_many(table).size == 1]
        assert taken == [simulation == device] * 2
        if simulation != device:
            assert dict(server.refused) == {"of a release, not of a simulation" if simulation else "of a simulation": 2}
            continue
        assert server.released.simulation == simulation
        assert ("simulation" in repr(server)) == simulation
        assert ToPLServer.restore(json.loads(json.dumps(server.state()))).simulation == simulation


# Streams: the mark ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "how",
    [
        {"epsilon": 1.0, **SEEDED},
        {"epsilon": math.inf, "simulation": True},
        {"epsilon": 1.0, "threshold": FixedPercentile(0.9), "simulation": True},
    ],
    ids=["seeded", "infinite", "threshold"],
)
def test_a_simulated_stream_says_so_wherever_it_goes(how, tmp_path):
    tops = ToPS(bound=100, warmup=100, horizon=1000, **how)
    tops.push_many([5, 6] * 500)
    released = tops.released
    assert repr(tops).endswith("; simulation)")
    assert repr(released).endswith("; simulation)")
    assert NOTE in tops._repr_html_()
    assert NOTE in released._repr_html_()
    again = ToPS.restore(json.loads(json.dumps(tops.state())), source=how.get("source"))
    assert again.released.simulation
    released.save(tmp_path / "out.parquet")
    assert pq.read_schema(tmp_path / "out.parquet").metadata[b"deniable.simulation"] == b"true"
    assert Released.load(tmp_path / "out.parquet").simulation
    told = run("stream", "query", str(tmp_path / "out.parquet"), "0:100")
    assert told.stdout.splitlines()[-1] == NOTE
    told = run("stream", "query", "--json", str(tmp_path / "out.parquet"), "0:100")
    assert NOTE in told.stderr
    assert NOTE not in told.stdout


def test_a_released_stream_says_nothing_of_the_kind(tmp_path):
    tops = ToPS(1.0, 100, warmup=100, horizon=1000)
    tops.push_many([5, 6] * 500)
    tops.released.save(tmp_path / "out.parquet")
    assert not Released.load(tmp_path / "out.parquet").simulation
    assert b"deniable.simulation" not in pq.read_schema(tmp_path / "out.parquet").metadata
    assert "simulation" not in repr(tops) + repr(tops.released) + tops.released._repr_html_()


def test_a_state_without_the_mark_is_not_a_way_to_release_a_simulation():
    tops = ToPS(math.inf, 100, warmup=10, horizon=1000, simulation=True)
    state = {name: value for name, value in tops.state().items() if name != "simulation"}
    with pytest.raises(InvalidData, match="damaged"):
        ToPS.restore(state)
    del state["seal"]
    with pytest.raises(SimulationOnly):
        ToPS.restore(seal(state))


# The command line -----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "users.csv").write_text("uid,age\n" + "".join(f"{uid},7\n" for uid in range(40)))
    (tmp_path / "values.txt").write_text("5\n6\n" * 50)
    dn.Collection(USERS, epsilon=math.inf, design="mg").save(tmp_path / "exact.toml")
    dn.Collection(USERS, epsilon=20.0).save(tmp_path / "weak.toml")
    dn.Collection(USERS, epsilon=2.0).save(tmp_path / "fine.toml")
    return tmp_path


def test_perturb_needs_the_flag_and_answers_say_so(folder):
    refused = run("perturb", "exact.toml", "users=users.csv", "-o", "reports")
    assert refused.returncode == 2
    assert "--simulation" in refused.stderr
    assert not (folder / "reports").exists()
    assert NOTE in run("perturb", "exact.toml", "users=users.csv", "-o", "reports", "--simulation").stdout
    assert run("query", "reports", QUESTION).stdout.splitlines()[-1] == NOTE
    for form in ("--json", "--csv"):
        told = run("query", "reports", QUESTION, form)
        assert NOTE in told.stderr
        assert NOTE not in told.stdout


def test_check_warns_of_an_epsilon_that_protects_little_or_nothing(folder):
    assert "No privacy: reports show the true values." in run("check", "exact.toml", "--simulation").stdout
    assert run("check", "exact.toml").returncode == 2
    assert "Little privacy: over a lifetime the odds of a guess" in run("check", "weak.toml").stdout
    assert "privacy" not in run("check", "fine.toml").stdout


PUBLISH = ("stream", "publish", "--bound", "10", "--warmup", "10", "--horizon", "100", "values.txt")


@pytest.mark.parametrize("epsilon", ["inf", "65"])
def test_stream_commands_need_the_flag(folder, epsilon):
    for command in (
        (*PUBLISH, "--epsilon", epsilon),
        ("stream", "report", "--epsilon", epsilon, "--bound", "10", "values.txt"),
        ("stream", "collect", "--epsilon", epsilon, "--bound", "10", "values.txt"),
    ):
        refused = run(*command)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "lets the data out as they are" in refused.stderr


def test_a_simulated_stream_is_published_with_the_flag(folder):
    told = run(*PUBLISH, "--epsilon", "inf", "--simulation", "-o", "out.parquet")
    assert told.returncode == 0
    assert NOTE in told.stderr
    assert run("stream", "query", "out.parquet", "0:90").stdout.splitlines()[-1] == NOTE


def test_a_store_stays_of_one_kind(folder):
    state = ("--epsilon", "1", "--store", "store")
    assert run(*PUBLISH, *state, "--simulation").returncode == 0
    refused = run(*PUBLISH, *state)
    assert refused.returncode == 2
    assert "the settings are not those of the store" in refused.stderr


def test_devices_and_server_of_a_simulated_stream(folder):
    agreed = ("--epsilon", "inf", "--bound", "10", "--simulation")
    (folder / "sent.jsonl").write_text(run("stream", "report", *agreed, "--theta", "10", "values.txt").stdout)
    told = run("stream", "collect", *agreed, "--theta", "10", "sent.jsonl", "-o", "out.parquet")
    assert NOTE in told.stderr
    assert Released.load(folder / "out.parquet").simulation
