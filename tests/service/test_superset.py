"""Apache Superset itself, in an environment of its own (`make test-all` makes it): its charts show our numbers."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import deniable as dn
from asked_shop import opened
from deniable.service.mysql.mysql_server import MysqlServer

SUPERSET = Path(__file__).parents[2] / ".venv-superset" / "bin"
CONFIG = """
import pymysql

pymysql.install_as_MySQLdb()
SECRET_KEY = "not a secret of anybody's, only of this test"
SQLALCHEMY_DATABASE_URI = "sqlite:///{path}?check_same_thread=false"
WTF_CSRF_ENABLED = TALISMAN_ENABLED = RATELIMIT_ENABLED = PREVENT_UNSAFE_DB_CONNECTIONS = False
"""
ADMIN = ("--username", "admin", "--firstname", "a", "--lastname", "b", "--email", "a@b.c", "--password", "admin")


@pytest.mark.slow
@pytest.mark.skipif(not (SUPERSET / "superset").exists(), reason="Superset is not installed: run make superset")
def test_a_bar_chart_and_a_table_show_what_the_library_answers(tmp_path):
    config = tmp_path / "superset_config.py"
    config.write_text(CONFIG.format(path=tmp_path / "superset.db"))
    settings = {**os.environ, "SUPERSET_CONFIG_PATH": str(config), "FLASK_APP": "superset", "HOME": str(tmp_path)}

    def run(program, *arguments):
        command = [str(SUPERSET / program), *arguments]
        return subprocess.run(command, env=settings, capture_output=True, text=True, check=True, timeout=900).stdout

    run("superset", "db", "upgrade")
    run("superset", "fab", "create-admin", *ADMIN)
    run("superset", "init")
    collector, keys = opened(tmp_path / "collected")
    server = MysqlServer(collector, 0)
    server.start()
    try:
        address = f"mysql+pymysql://asker:{keys['ask']}@127.0.0.1:{server.port}/shop"
        shown = run("python", str(Path(__file__).with_name("superset_session.py")), address)
        answer = dn.connect(collector.folder.path).sql(
            "SELECT sex, COUNT(*) AS n FROM users GROUP BY sex ORDER BY n DESC"
        )
    finally:
        server.close()
        collector.close()
    numbers = json.loads(shown.partition("NUMBERS ")[2].splitlines()[0])
    expected = {sex: estimate.value for sex, estimate in zip(answer.groups["sex"], answer.answers["n"], strict=True)}
    for chart in ("bar", "table"):
        assert {row["sex"]: row["people"] for row in numbers[chart]} == pytest.approx(expected)
    assert numbers["columns"] == ["uid", "age", "sex"]
