"""Tools that speak MySQL ask what they could ask over HTTP: PyMySQL, SQLAlchemy, the mariadb client, JDBC."""

import contextlib
import re
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from pathlib import Path

import ibis
import pymysql
import pytest
import sqlalchemy
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

import deniable as dn
from asked_shop import opened
from deniable.cancellation import checkpoint
from deniable.errors import InvalidParameter
from deniable.service.mysql import mysql_server
from deniable.service.mysql.mysql_server import MysqlServer
from self_signed import self_signed

COUNT = "SELECT sex, COUNT(*) AS n FROM users GROUP BY sex"
MARIADB_JAR = Path("/usr/share/java/mariadb-java-client.jar")


class Door:
    def __init__(self, collector, keys):
        self.collector, self.keys = collector, keys
        self.server = MysqlServer(collector, 0)
        self.server.start()

    def connect(self, user="asker", password=None, **more):
        password = self.keys["ask"] if password is None else password
        return pymysql.connect(host="127.0.0.1", port=self.server.port, user=user, password=password, **more)

    def rows(self, *texts, **more):
        with self.connect(**more) as connection, connection.cursor() as cursor:
            for text in texts:
                cursor.execute(text)
            return [column[0] for column in cursor.description or ()], list(cursor.fetchall())


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    collector, keys = opened(tmp_path_factory.mktemp("asked") / "collected")
    made = Door(collector, keys)
    yield made
    made.server.close()
    collector.close()


@pytest.fixture(scope="module")
def expected(door):
    return dn.connect(door.collector.folder.path)


def test_answers_are_those_of_the_folder_with_their_errors(door, expected):
    names, rows = door.rows(COUNT)
    table = expected.sql(COUNT).to_arrow()
    assert names == ["sex", "n", "n_stderr", "n_low", "n_high"]
    assert [row[0] for row in rows] == ["f", "m"]
    for number, name in enumerate(names[1:], start=1):
        assert [row[number] for row in rows] == pytest.approx(table[name].to_pylist())


def test_session_variables_set_options(door, expected):
    names, rows = door.rows("SET deniable_error_columns = OFF", COUNT)
    assert (names, len(rows)) == (["sex", "n"], 2)
    wide, narrow = (door.rows(f"SET SESSION deniable_confidence = {level}", COUNT)[1][0][3] for level in (0.999, "0.5"))
    assert wide < narrow
    assert narrow == pytest.approx(expected.sql(COUNT, confidence=0.5).answers["n"][0].interval[0])
    assert door.rows("SET deniable_simultaneous = 1", "SELECT @@deniable_simultaneous")[1] == [(1,)]
    with pytest.raises(pymysql.Error, match="confidence must lie between 0 and 1"):
        door.rows("SET deniable_confidence = 7")
    with pytest.raises(pymysql.Error, match="Unknown variable"):
        door.rows("SET deniable_typo = 7")
    with pytest.raises(pymysql.Error, match="ON or OFF"):
        door.rows("SET deniable_clip = 'perhaps'")


def test_notes_are_warnings(door):
    with door.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) AS n FROM users WHERE age > 400")
        assert cursor.warning_count == 1
        cursor.execute("SHOW WARNINGS")
        ((level, _, words),) = cursor.fetchall()
        assert level == "Note"
        assert "400" in words
        cursor.execute(COUNT)
        assert cursor.warning_count == 0


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("SELECT 1", (1,)),
        ("SELECT 1 + 1 AS two, 'a', NULL", (2, "a", None)),
        ("SELECT DATABASE()", ("shop",)),
        ("SELECT @@max_allowed_packet", (67108864,)),
        ("SELECT CURRENT_USER()", ("asker",)),
        ("SHOW TABLES", ("orders",)),
        ("SHOW FULL TABLES FROM shop", ("orders", "BASE TABLE")),
        ("SHOW DATABASES", ("information_schema",)),
        ("SHOW COLUMNS FROM users LIKE 'age'", ("age", "bigint", "YES", "", None, "")),
        ("SHOW FIELDS FROM users LIKE 'age'", ("age", "bigint", "YES", "", None, "")),
        ("DESCRIBE users", ("uid", "varchar", "YES", "", None, "")),
        ("SHOW ENGINES", ("deniable", "DEFAULT", "randomised reports")),
        ("SHOW VARIABLES LIKE 'deniable_conf%'", ("deniable_confidence", "0.95")),
        ("SHOW CHARACTER SET", ("utf8mb4", "UTF-8 Unicode", "utf8mb4_general_ci")),
        ("SHOW COLLATION", ("utf8mb4_general_ci", "utf8mb4", "45", "Yes")),
        ("SHOW GRANTS", ("GRANT SELECT ON *.* TO `asker`",)),
        ("SHOW CREATE DATABASE shop", ("shop", "CREATE DATABASE `shop`")),
        ("SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'shop'", (6,)),
        ("SELECT COLUMN_COMMENT FROM INFORMATION_SCHEMA.COLUMNS WHERE COLUMN_NAME = 'sex'", ("private: f, m",)),
        ("EXPLAIN SELECT COUNT(*) FROM users WHERE age < 40", ("optimal weights, direct sums",)),
        ("SELECT DISTINCT sex FROM users LIMIT 1", ("f",)),
        ("SHOW GRANTS FOR CURRENT_USER()", ("GRANT SELECT ON *.* TO `asker`",)),
        (
            "SELECT @@GLOBAL.time_zone AS global_tz, @@system_time_zone AS system_tz, time_format(timediff(now(), "
            "convert_tz(now(), @@GLOBAL.time_zone, '+00:00')), '%H:%i') AS 'offset';",
            ("UTC", "UTC", "00:00"),
        ),
        (
            "SELECT DISTINCT TABLE_SCHEMA from information_schema.TABLES where TABLE_TYPE != 'SYSTEM VIEW' "
            "ORDER BY TABLE_SCHEMA",
            ("shop",),
        ),
        ("SELECT table_name FROM information_schema.tables WHERE table_schema = database()", ("orders",)),
    ],
)  # fmt: skip
def test_what_tools_ask_first(door, text, first):
    assert door.rows(text)[1][0] == first


@pytest.mark.parametrize(
    "text", ["SHOW PLUGINS", "SHOW TRIGGERS", "SHOW EVENTS", "SHOW INDEX FROM users", "SHOW KEYS FROM users",
             "SHOW STATUS", "SET foreign_key_checks = 0", "SET @mine = 1", "BEGIN", "COMMIT", "ROLLBACK",
             "USE shop", "SET NAMES utf8mb4", "SET SESSION TRANSACTION READ ONLY",
             "SET sql_mode = CONCAT(@@sql_mode, ',STRICT_TRANS_TABLES')"]
)  # fmt: skip
def test_what_is_taken_and_has_no_rows(door, text):
    assert door.rows(text)[1] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("SELECT * FROM users", "rows of single people cannot be shown"),
        ("DELETE FROM users", "nothing can be changed"),
        ("CREATE TABLE x (a INT)", "nothing can be changed"),
        ("SELECT COUNT(*) FROM nobody", "nobody"),
        ("SELECT FROM WHERE", "not understood"),
        ("USE elsewhere", "There is one database: shop"),
        ("SELECT * FROM information_schema.nothing", "cannot be asked about the catalogue"),
        ("SELECT * FROM read_csv('/etc/passwd')", "only the collection's own tables"),
        (
            "SELECT (SELECT a FROM information_schema.columns, read_csv('/etc/passwd') AS t(a))",
            "a subquery here is one aggregate",
        ),
        ("SELECT WEEK(day), COUNT(*) FROM orders GROUP BY WEEK(day)", "ISO 8601"),
        ("SELECT YEARWEEK(day), COUNT(*) FROM orders GROUP BY YEARWEEK(day)", "YEARWEEK is not known here"),
        ("SELECT TRUE FROM nobody WHERE 1 <> 1 LIMIT 0", "there is no table 'nobody'"),
        ("KILL 99", "no connection of yours"),
        ("SHOW CREATE TABLE nobody", "there is no table 'nobody'"),
        ("SELECT " + "1," * 60_000 + "1", "longer|shorter"),
    ],
)
def test_refusals_say_what_to_do(door, text, words):
    with pytest.raises(pymysql.Error, match=words):
        door.rows(text)


def test_create_table_says_what_each_column_is(door):
    ((_, text),) = door.rows("SHOW CREATE TABLE orders")[1]
    assert "`day` date DEFAULT NULL COMMENT 'private: 2026-01-01 to 2026-03-31'" in text


def bi_questions():
    text = Path(__file__).with_name("bi_questions.sql").read_text(encoding="utf-8")
    for name, rows, sql in re.findall(r"^-- (.+): (\d+)\n(SELECT .+);$", text, re.MULTILINE):
        yield pytest.param(sql, int(rows), id=name)


@pytest.mark.parametrize(("sql", "rows"), [*bi_questions()])
def test_what_charts_send_is_answered(door, sql, rows):
    assert len(door.rows(sql)[1]) == rows


def test_months_and_filters_of_tools_mean_what_they_say(door, expected):
    texts = {parameter.id: parameter.values[0] for parameter in bi_questions()}
    months = door.rows(texts["Metabase, a line chart by month"])[1]
    plain = expected.sql("SELECT MONTH(day) AS month, COUNT(*) AS n FROM orders GROUP BY MONTH(day)")
    assert [row[0].isoformat() for row in months] == ["2026-01-01", "2026-02-01", "2026-03-01"]
    assert [row[1] for row in months] == pytest.approx([estimate.value for estimate in plain.answers["n"]])
    series = door.rows(texts["Grafana, a time series by $__timeGroup(day, '1d') and $__timeFilter(day)"])[1]
    days = expected.sql(
        "SELECT day, COUNT(*) AS n FROM orders WHERE day BETWEEN DATE '2026-01-01' AND DATE '2026-01-11' GROUP BY day"
    )
    assert [row[1] for row in series] == pytest.approx([estimate.value for estimate in days.answers["n"]])
    assert [row[0] for row in series] == [1767225600 + 86400 * day for day in range(11)]


def weekly(expected, weeks):
    """Counts by the first day of a week, from the library: `weeks` is SQL for that day."""
    answer = expected.sql(f"SELECT {weeks} AS week, COUNT(*) AS n FROM orders GROUP BY {weeks}")
    return {
        str(week): estimate.value for week, estimate in zip(answer.groups["week"], answer.answers["n"], strict=True)
    }


def test_weeks_begin_where_mysql_begins_them(door, expected):
    texts = {parameter.id: parameter.values[0] for parameter in bi_questions()}
    sunday = weekly(expected, "CAST(DATE_TRUNC('week', day + INTERVAL 1 DAY) - INTERVAL 1 DAY AS DATE)")
    monday = weekly(expected, "CAST(DATE_TRUNC('week', day) AS DATE)")
    assert min(sunday) == "2025-12-28"
    assert min(monday) == "2025-12-29"
    for name, counts in (
        ("Superset, a line chart by week", sunday),
        ("Metabase, a line chart by week", sunday),
        ("Superset, a line chart by week from Monday", monday),
    ):
        assert {str(row[0]): row[1] for row in door.rows(texts[name])[1]} == pytest.approx(counts), name
    days = door.rows(texts["Metabase, a bar chart by day of the week"])[1]
    answer = expected.sql("SELECT DAYOFWEEK(day) AS d, COUNT(*) AS n FROM orders GROUP BY DAYOFWEEK(day)")
    assert [row[0] for row in days] == [1, 2, 3, 4, 5, 6, 7]  # Sunday is 1 in MySQL and 0 in DuckDB
    assert [row[1] for row in days] == pytest.approx([estimate.value for estimate in answer.answers["n"]])
    days = door.rows("SELECT WEEKDAY(day) AS d, COUNT(*) AS n FROM orders GROUP BY WEEKDAY(day) ORDER BY d")[1]
    values = [estimate.value for estimate in answer.answers["n"]]
    assert [row[1] for row in days] == pytest.approx([*values[1:], values[0]])


def test_ranges_that_begin_and_end_inside_a_day(door, expected):
    texts = {parameter.id: parameter.values[0] for parameter in bi_questions()}
    inside = "FROM orders WHERE day > DATE '2026-01-01' AND day <= DATE '2026-01-11'"
    plain = expected.sql(f"SELECT COUNT(*) AS n {inside}").scalar()
    week = "CAST(FLOOR(EXTRACT(EPOCH FROM day) / 604800) * 604800 AS BIGINT)"
    by_week = expected.sql(f"SELECT {week} AS week, COUNT(*) AS n {inside} GROUP BY {week}")
    between = "FROM_UNIXTIME(1767225671) AND FROM_UNIXTIME(1768089611)"  # some seconds after two midnights
    assert door.rows(f"SELECT COUNT(*) FROM orders WHERE day BETWEEN {between}")[1][0][0] == pytest.approx(plain.value)
    weeks = door.rows(texts["Grafana, a time series by $__timeGroup(day, '1w') with a range inside days"])[1]
    assert [row[0] for row in weeks] == [1767225600, 1767225600 + 604800]
    assert [row[1] for row in weeks] == pytest.approx([estimate.value for estimate in by_week.answers["n"]])


def test_a_question_kept_as_a_dataset_has_its_errors_as_columns(door):
    _, rows = door.rows(COUNT)
    kept = f"({COUNT}) AS `virtual_table`"
    names, picked = door.rows(f"SELECT `sex` AS `sex`, `n_high` AS `high`, n FROM {kept} ORDER BY `high` DESC LIMIT 10")
    assert names == ["sex", "high", "n"]
    assert picked == [
        (row[0], pytest.approx(row[4]), pytest.approx(row[1])) for row in sorted(rows, key=lambda r: -r[4])
    ]
    by_group = door.rows(f"SELECT sex AS sex, MAX(n_low) AS low FROM {kept} GROUP BY sex ORDER BY low")[1]
    assert sorted(by_group) == [(row[0], pytest.approx(row[3])) for row in rows]
    with pytest.raises(pymysql.Error, match="cannot be added up"):
        door.rows(f"SELECT SUM(n_low) FROM {kept}")
    with pytest.raises(pymysql.Error, match="one table"):
        door.rows(f"SELECT n_low FROM {kept} WHERE n > (SELECT 1 FROM information_schema.tables)")
    with pytest.raises(pymysql.Error, match="cannot be asked"):
        door.rows(f"SELECT n_low, getenv('HOME') FROM {kept}")
    with pytest.raises(pymysql.Error, match="rows of single people"):
        door.rows("SELECT age_low FROM (SELECT age FROM users) AS kept")


# Who may --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "password"), [("asker", "x"), ("asker", ""), ("operater", None), ("nobody", ""), ("nobody", "x"), ("", "")]
)
def test_only_a_key_that_may_ask_is_let_in(door, user, password):
    with pytest.raises(pymysql.OperationalError, match="Access denied"):
        door.connect(user, door.keys["operate"] if password is None else password)


def test_a_client_that_goes_on_after_a_wrong_password_learns_nothing(door):
    with socket.create_connection(("127.0.0.1", door.server.port)) as plain:
        greeting = plain.recv(4096)
        assert b"mysql_native_password" in greeting
        answer = (0x0200 | 0x8000 | 0x80000).to_bytes(4, "little") + (2**24).to_bytes(4, "little") + bytes([45])
        answer += bytes(23) + b"asker\0" + bytes([20]) + bytes(20) + b"mysql_native_password\0"
        query = b"\x03SELECT COUNT(*) FROM users"
        plain.sendall(len(answer).to_bytes(3, "little") + b"\1" + answer)
        told = b""
        while b"Access denied" not in told:
            part = plain.recv(4096)
            assert part, told
            told += part
        with contextlib.suppress(ConnectionError):  # the server may have gone before it read this
            plain.sendall(len(query).to_bytes(3, "little") + b"\0" + query)
            while part := plain.recv(4096):
                told += part
        assert b"count" not in told


def test_a_revoked_key_asks_nothing_more(door):
    made = []

    def add(keys):
        changed, text = keys.with_key("leaver", "ask")
        made.append(text)
        return changed

    door.collector.keys.change(add)
    with door.connect("leaver", made[0]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        door.collector.keys.change(lambda keys: keys.without("leaver"))
        with pytest.raises(pymysql.Error, match="not valid any more"):
            cursor.execute("SELECT 1")


def test_an_expired_key_asks_nothing_more(door, monkeypatch):
    made = []

    def add(keys):
        changed, text = keys.with_key("visitor", "ask", 1_000)
        made.append(text)
        return changed

    door.collector.keys.change(add)
    monkeypatch.setattr(door.collector, "now", lambda: 999)
    with door.connect("visitor", made[0]) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        monkeypatch.setattr(door.collector, "now", lambda: 1_000)
        with pytest.raises(pymysql.Error, match="not valid any more"):
            cursor.execute("SELECT 1")
    with pytest.raises(pymysql.OperationalError, match="Access denied"):
        door.connect("visitor", made[0])


def test_large_packets_and_many_connections_are_refused(door, monkeypatch):
    with socket.create_connection(("127.0.0.1", door.server.port)) as plain:
        plain.recv(4096)
        plain.sendall(b"\xff\xff\xfe\x01")
        while plain.recv(4096):
            pass
    monkeypatch.setattr(mysql_server, "MOST_CONNECTIONS", 0)
    with pytest.raises(pymysql.OperationalError, match="Too many connections"):
        door.connect()


def tls_greets_at_once(port, context):
    """Whether TLS works if its first bytes come in one piece with the packet that asks for it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    asks = (0x0200 | 0x0800 | 0x8000 | 0x80000).to_bytes(4, "little") + (2**24).to_bytes(4, "little") + bytes([45])
    packet = asks + bytes(23)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
        plain.recv(4096)
        plain.sendall(len(packet).to_bytes(3, "little") + bytes([1]) + packet + outgoing.read())
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                incoming.write(plain.recv(65536))
            else:
                return True


def test_other_machines_need_tls(tmp_path):
    certificate, key = map(str, self_signed(tmp_path))
    collector, keys = opened(tmp_path / "collected", users=2, host="0.0.0.0", certificate=certificate, private_key=key)  # noqa: S104
    encrypted = Door(collector, keys)
    try:
        with pytest.raises(pymysql.OperationalError, match="need TLS"):
            encrypted.connect(ssl_disabled=True)
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        for _ in range(5):
            assert encrypted.rows("SELECT 1", ssl=context)[1] == [(1,)]
        assert tls_greets_at_once(encrypted.server.port, context)
    finally:
        encrypted.server.close()
        collector.close()
    bare, _ = opened(tmp_path / "bare", users=2, host="0.0.0.0")  # noqa: S104
    with pytest.raises(InvalidParameter, match="needs TLS"):
        MysqlServer(bare, 0)
    bare.close()


# A long question ------------------------------------------------------------------------------------------------------


def test_a_long_question_can_be_killed_by_whom_it_belongs_to(door, monkeypatch):
    begun = threading.Event()

    def answers_for_ever(self, text, options):
        begun.set()
        while True:
            checkpoint()

    monkeypatch.setattr(dn.Database, "answer", answers_for_ever)
    with door.connect() as asking, door.connect() as other:
        ends = threading.Timer(10, asking.close)
        ends.start()
        failed = []

        def ask():
            try:
                asking.cursor().execute(COUNT)
            except pymysql.Error as problem:
                failed.append(problem)

        thread = threading.Thread(target=ask)
        thread.start()
        assert begun.wait(10)
        with other.cursor() as cursor:
            cursor.execute("SHOW PROCESSLIST")
            assert str(asking.thread_id()) in [row[0] for row in cursor.fetchall()]
            cursor.execute(f"KILL QUERY {asking.thread_id()}")
        thread.join()
        ends.cancel()
        assert "killed" in str(failed[0])
        monkeypatch.undo()
        with asking.cursor() as cursor:  # the connection goes on
            cursor.execute("SELECT 1")
            assert cursor.fetchall() == ((1,),)


def test_a_question_ends_when_its_time_is_over(door, monkeypatch):
    def answers_for_ever(self, text, options):
        while True:
            checkpoint()

    monkeypatch.setattr(dn.Database, "answer", answers_for_ever)
    with pytest.raises(pymysql.Error, match="takes too long"):
        door.rows("SET max_execution_time = 50", COUNT)


# Other clients --------------------------------------------------------------------------------------------------------


def test_sqlalchemy_reads_tables_columns_and_answers(door, expected):
    engine = sqlalchemy.create_engine(f"mysql+pymysql://asker:{door.keys['ask']}@127.0.0.1:{door.server.port}/shop")
    inspected = sqlalchemy.inspect(engine)
    assert inspected.get_table_names() == ["orders", "users"]
    columns = {column["name"]: (str(column["type"]), column["comment"]) for column in inspected.get_columns("orders")}
    assert columns["day"] == ("DATE", "private: 2026-01-01 to 2026-03-31")
    assert columns["amount"] == ("BIGINT", "private: 0 to 500")
    users = sqlalchemy.Table("users", sqlalchemy.MetaData(), autoload_with=engine)
    question = sqlalchemy.select(sqlalchemy.func.avg(users.c.age).label("age")).where(users.c.sex == "f")
    with engine.connect() as connection:
        answer = connection.execute(question).one()
    assert answer.age == pytest.approx(expected.sql("SELECT AVG(age) AS age FROM users WHERE sex = 'f'").scalar().value)
    engine.dispose()


def test_ibis_reflects_and_asks_raw_sql(door, monkeypatch):
    monkeypatch.setitem(sys.modules, "MySQLdb", pymysql)  # what its backend imports
    monkeypatch.setattr(pymysql, "Connection", pymysql.connections.Connection, raising=False)
    asked = ibis.mysql.connect(
        host="127.0.0.1", port=door.server.port, user="asker", password=door.keys["ask"], database="shop"
    )
    assert asked.list_tables() == ["orders", "users"]
    assert dict(asked.table("users").schema())["age"].is_int64()
    with contextlib.closing(asked.raw_sql(COUNT)) as cursor:
        assert [row[0] for row in cursor.fetchall()] == ["f", "m"]
    asked.disconnect()


def test_the_command_opens_both_ports(tmp_path):
    folder = tmp_path / "collected"
    collector, keys = opened(folder, users=5)
    collector.close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "deniable", "serve", str(folder), "--port", "0", "--mysql", str(port)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = iter(process.stderr.readline, "")
            assert any(f"mysql://127.0.0.1:{port}/shop" in line for line in lines)
            assert any("http://127.0.0.1:" in line for line in lines)
            connection = pymysql.connect(host="127.0.0.1", port=port, user="asker", password=keys["ask"])
            with connection, connection.cursor() as cursor:
                assert cursor.execute(COUNT) == 2
        finally:
            process.send_signal(signal.SIGTERM)
            process.stderr.read()
        assert process.wait(60) == 0


@pytest.mark.skipif(shutil.which("mariadb") is None, reason="the mariadb client is not installed")
def test_the_mariadb_client(door, tmp_path):
    options = tmp_path / "client.cnf"
    options.write_text(
        f"[client]\nuser=asker\npassword={door.keys['ask']}\nhost=127.0.0.1\nport={door.server.port}\nskip-ssl\n"
    )
    options.chmod(0o600)
    texts = f"SELECT COUNT(*) AS n FROM users WHERE age > 400; DESCRIBE users; {COUNT}; SHOW TABLES"
    ran = subprocess.run(
        [shutil.which("mariadb"), f"--defaults-file={options}", "--show-warnings", "--table", "shop", "-e", texts],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "| n_stderr" in ran.stdout
    assert "Note (Code 1105)" in ran.stdout + ran.stderr
    assert "| age   | bigint" in ran.stdout


@pytest.fixture(scope="module")
def java():
    if shutil.which("java") is None or not MARIADB_JAR.exists():
        pytest.skip("Java or MariaDB's JDBC driver (libmariadb-java) is not installed")
    port, process = launch_gateway(classpath=str(MARIADB_JAR), die_on_exit=True, return_proc=True)
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port, auto_convert=True))
    yield gateway.jvm
    gateway.shutdown()
    process.stdin.close()
    process.wait(10)


def test_the_jdbc_driver(door, expected, java):
    address = f"jdbc:mariadb://127.0.0.1:{door.server.port}/shop"
    java.java.lang.Class.forName("org.mariadb.jdbc.Driver")
    connection = java.java.sql.DriverManager.getConnection(
        f"{address}?useServerPrepStmts=true", "asker", door.keys["ask"]
    )
    statement = connection.prepareStatement("SELECT COUNT(*) AS n FROM users WHERE age < ? AND sex = ?")
    statement.setInt(1, 50)
    statement.setString(2, "f")
    rows = statement.executeQuery()
    assert rows.next()
    plain = expected.sql("SELECT COUNT(*) AS n FROM users WHERE age < 50 AND sex = 'f'").scalar()
    assert (rows.getDouble("n"), rows.getDouble("n_stderr")) == pytest.approx((plain.value, plain.stderr))
    about = connection.getMetaData()
    assert "deniable" in about.getDatabaseProductVersion()
    tables = about.getTables("shop", None, "%", None)
    names = []
    while tables.next():
        names.append((tables.getString("TABLE_NAME"), tables.getString("REMARKS")))
    assert [name for name, _ in names] == ["orders", "users"]
    columns, described = about.getColumns("shop", None, "users", "%"), []
    while columns.next():
        described.append(tuple(columns.getString(name) for name in ("COLUMN_NAME", "TYPE_NAME", "REMARKS")))
    assert ("age", "BIGINT", "private: 1 to 95") in described
    connection.close()
