"""Lines of devices with changed bytes and values: what cannot be read is counted, and never stops the rest."""

import io
import json

import deniable as dn
from command_line import run
from deniable.client import ToPLClient
from deniable.stores.report_batches import read_report_lines
from deniable.streams.local.report_arrays import MALFORMED
from fuzzing.harness import SECRET, cases, fuzz
from fuzzing.mutations import PLAIN, mutated_bytes, mutated_value

SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95), kind=dn.Categorical("a", "b"), city=dn.Public(), level=dn.Public()),
    dn.Table("orders", many=5, amount=dn.Ordinal(0, 20)),
    epsilon=2.0,
)
PUBLIC = {"city": f"Rome {SECRET}", "level": SECRET}
LINES = [
    report.to_json(SECRET + uid, table, PUBLIC if table == "users" else None)
    for uid in range(3)
    for table, rows in (("users", [{"age": 31, "kind": "a"}]), ("orders", [{"amount": 3}, {"amount": 9}]))
    for report in SHOP.client().reports(table, rows)
]
BOUND, THETA = 500.0, 40.0
FIRST = [2, *[50] * 20]  # to choose θ takes a while
SENT = [
    ToPLClient(2.0, BOUND).report(value, theta).to_json(SECRET + uid)
    for uid, (value, theta) in enumerate([(3, None), (31, None), (7, THETA), (50, THETA), (90, THETA)])
]


def odd(chance, lines):
    """Some lines, some of them changed, as a text."""
    made = []
    for line in chance.choices(lines, k=chance.randrange(1, 6)):
        match chance.randrange(4):
            case 0:
                made.append(json.dumps(mutated_value(chance, json.loads(line), PLAIN)).encode())
            case 1 | 2:
                made.append(mutated_bytes(chance, line.encode()))
            case _:
                made.append(line.encode())
    return b"\n".join(made)


@cases(150)
def test_lines_of_tables(count):
    def attempt(chance):
        text = odd(chance, LINES).decode(errors=chance.choice(("replace", "surrogateescape")))
        reports = SHOP.gather(text.split("\n"))
        assert str(SECRET) not in repr(reports)
        if reports.tables:
            database = dn.connect(reports)
            database.sql("SELECT COUNT(*) FROM users WHERE age < 30") if "users" in reports.tables else None

    outcomes = fuzz(attempt, "lines of tables", count)
    assert outcomes["works"] > count // 2


@cases(150)
def test_lines_of_streams(count):
    def attempt(chance):
        server = dn.streams.ToPLServer(2.0, BOUND, theta=chance.choice((None, THETA)), first=chance.choice(FIRST))
        for batch in read_report_lines(io.BytesIO(odd(chance, SENT))):
            server.refused[MALFORMED] += batch.malformed
            server.push_many(batch.reports)
        assert str(SECRET) not in repr(server)
        dn.streams.ToPLServer.restore(json.loads(json.dumps(server.state())))

    outcomes = fuzz(attempt, "lines of streams", count)
    assert outcomes["works"] > count // 2


@cases(100)
def test_lines_through_the_command(count):
    def attempt(chance):
        text = odd(chance, SENT).decode(errors="replace")
        done = run(
            *("stream", "collect", "--epsilon", "2", "--bound", BOUND, "--first", chance.choice(FIRST)),
            *chance.choice(((), ("--theta", THETA), ("--every", "2"))),
            text=text,
            DENIABLE_TRACEBACK="1",
        )
        assert done.returncode in (0, 2)
        assert str(SECRET) not in done.stdout + done.stderr

    assert set(fuzz(attempt, "lines through the command", count)) == {"works"}
