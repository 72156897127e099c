"""Reports under pseudonyms on the device: one name for a collection, one message for a round, of one size."""

import json
import shutil

import pytest

import deniable as dn
from deniable.client import Uploader
from deniable.errors import InvalidData, InvalidParameter
from deniable.ledger import Account
from deniable.tables.reports.bundle import Bundle
from deniable.tables.schema.pseudonyms import NAME_BYTES
from deniable.tables.schema.report_format import REPORT_BYTES

USERS = dn.Table("users", age=dn.Ordinal(1, 95))
ORDERS = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
SHOP = dn.Collection(USERS, ORDERS, epsilon=4.0, name="shop", ids="pseudonym")


def bundled(client, age=31, amounts=(), number=None):
    client.report("users", {"age": age}, number)
    client.reports("orders", [{"amount": amount} for amount in amounts], number)
    return client.bundle(number)


def test_services_of_one_device_share_the_name_by_sharing_the_memory(tmp_path):
    memory = tmp_path / "memory.json"
    profile, checkout = SHOP.client(memory), SHOP.client(memory)
    assert profile.missing() == ("users", "orders")
    first = profile.report("users", {"age": 31})
    assert profile.missing() == checkout.missing() == ("orders",)
    with pytest.raises(InvalidData, match="'orders' has not reported yet"):
        profile.bundle()
    others = checkout.reports("orders", [{"amount": 5}])
    bundle = profile.bundle()
    assert bundle == checkout.bundle() == SHOP.client(memory).bundle()  # after a restart too
    assert bundle.reports == b"".join(report.to_bytes() for report in (first, *others))


@pytest.mark.parametrize("with_ledger", [False, True])
def test_an_answer_without_its_charge_is_in_no_bundle(tmp_path, monkeypatch, with_ledger):
    """A service that was killed between memory and charge: another one must not send for it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "notes"))
    memory, ledger = tmp_path / "memory.json", dn.Ledger(tmp_path / "ledger.json", limit=8.0)
    profile, checkout = SHOP.client(memory, ledger=ledger), SHOP.client(memory, ledger=ledger if with_ledger else None)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Account, "charge", killed)
        with pytest.raises(KeyboardInterrupt):
            profile.report("users", {"age": 31})
    checkout.reports("orders", [])
    uploader = Uploader(checkout, "http://127.0.0.1:9", queue=tmp_path / "queue.json")
    uploader.add("orders", [])
    assert (checkout.missing(), uploader.waiting) == (("users",), 0)
    with pytest.raises(InvalidData, match="'users' has not reported yet"):
        checkout.bundle()
    paid = SHOP.spent_on("orders").epsilon if with_ledger else 0
    assert ledger.spent == paid
    profile.report("users", {"age": 90})  # the same bytes, and now they are paid for
    assert ledger.spent == paid + SHOP.spent_on("users").epsilon
    assert checkout.missing() == ()
    assert checkout.bundle() == profile.bundle()
    profile.report("users", {"age": 90})
    assert ledger.spent == paid + SHOP.spent_on("users").epsilon


def test_a_copy_of_the_memory_says_the_same_and_another_memory_has_another_name(tmp_path):
    memory, copy = tmp_path / "memory.json", tmp_path / "copy.json"
    first = bundled(SHOP.client(memory))
    shutil.copy(memory, copy)
    assert bundled(SHOP.client(copy), age=90, amounts=(1, 2)) == first
    names = {bundled(SHOP.client()).name for _ in range(50)}
    assert len(names) == 50
    other = SHOP.with_settings(epsilon=3.0).client(memory)  # another collection: nothing links the two
    assert bundled(other).name != first.name


def test_size_and_form_do_not_depend_on_data():
    made = [bundled(SHOP.client(), age, amounts) for age, amounts in [(1, ()), (95, (500,) * 30), (None, (3,))]]
    assert {len(bundle.to_bytes()) for bundle in made} == {NAME_BYTES + 3 * REPORT_BYTES}
    assert len({len(bundle.to_json()) for bundle in made}) == 1
    assert all(Bundle.from_json(bundle.to_json()) == bundle for bundle in made)


def test_the_name_is_one_draw_of_128_bits_whatever_the_rows_are():
    for rows in ([], [{"amount": 500}] * 20):
        asked = []

        def watched(bound, asked=asked):
            asked.append(bound)
            return 0

        client = dn.client.Client(SHOP, randbelow=watched, simulation=True)
        client.report("users", {"age": 31})
        client.reports("orders", rows)
        before = len(asked)
        assert client.bundle().name == "0" * 32
        client.bundle()
        assert asked[before:] == [2**128]


def test_rounds_are_linked_by_the_name_and_a_round_that_is_not_hers_has_no_bundle():
    rounds = SHOP.with_settings(rounds=dn.Rounds(4, answers=2))
    client = rounds.client()
    bundles = [bundled(client, number=number) for number in (1, 2, 3, 4)]
    answered = [bundle for bundle in bundles if bundle is not None]
    assert len(answered) == 2
    assert len({bundle.name for bundle in answered}) == 1
    assert answered[0].reports != answered[1].reports


@pytest.mark.parametrize(
    ("tables", "settings", "words"),
    [
        ((USERS,), {"coins": "assigned"}, "would choose its coins"),
        ((dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public()),), {}, "public columns may tell"),
        ((USERS, dn.Table("products", owner="shop", key="pid", price=dn.Ordinal(0, 4))), {"owners": {"shop": 1.0}},
         "tables of another owner"),
        ((USERS,), {"name": "shop", "rounds": dn.Rounds(3, cover=True)}, "hide a turn"),
        ((USERS,), {"ids": "random"}, "unknown kind"),
    ],
)  # fmt: skip
def test_contradictions_are_refused(tables, settings, words):
    with pytest.raises(InvalidParameter, match=words):
        dn.Collection(*tables, epsilon=1.0, **{"ids": "pseudonym", **settings})


def test_nothing_may_name_the_user(tmp_path):
    with pytest.raises(InvalidParameter, match="devices draw their own names"):
        SHOP.client(user="7")
    for more in ({"user": "7"}, {"token": "v1.1.1.x"}):
        with pytest.raises(InvalidParameter, match="would say whose a pseudonym is"):
            Uploader(SHOP.client(), "http://127.0.0.1:9", queue=tmp_path / "queue.json", **more)
    by_id = SHOP.with_settings(ids="user")
    with pytest.raises(InvalidParameter, match="bundles are for pseudonyms"):
        by_id.client().bundle()
    with pytest.raises(InvalidParameter, match="user is missing"):
        Uploader(by_id.client(), "http://127.0.0.1:9", queue=tmp_path / "queue.json")


def test_the_queue_gets_one_bundle_when_the_last_service_has_reported(tmp_path):
    memory = tmp_path / "memory.json"
    uploaders = [
        Uploader(SHOP.client(memory), "http://127.0.0.1:9", queue=tmp_path / f"queue {number}") for number in (1, 2)
    ]
    uploaders[0].add("users", [{"age": 31}])
    assert uploaders[0].waiting == 0
    uploaders[1].add("orders", [])
    uploaders[1].add("orders", [{"amount": 3}])  # again: the same bytes
    assert uploaders[1].waiting == 1


def test_files_and_hashes_say_how_reports_travel(tmp_path):
    for name in ("shop.toml", "shop.json"):
        SHOP.save(tmp_path / name)
        assert dn.Collection.load(tmp_path / name) == SHOP
    assert json.loads(SHOP.to_json())["ids"] == "pseudonym"
    assert "ids" not in json.loads(SHOP.with_settings(ids="user").to_json())
    assert SHOP.with_settings(ids="user").sha256 != SHOP.sha256


@pytest.mark.parametrize("line", ["", "{}", '{"name":"00","reports":""}', '{"name":1,"reports":[]}', "[]", "\xff"])
def test_odd_lines_are_not_bundles(line):
    with pytest.raises(InvalidData, match="documented form"):
        Bundle.from_json(line)
