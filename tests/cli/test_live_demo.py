"""`deniable demo --serve`: devices report to a collector over HTTP, tables and a stream."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import unquote

import pytest

from deniable.cli.demo import live_shop
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.service.keys import SCOPES


def test_devices_report_to_a_console_that_is_open(tmp_path):
    command = [
        sys.executable,
        "-m",
        "deniable",
        "demo",
        "--serve",
        "--port",
        "0",
        "--users",
        "20000",
        "-o",
        str(tmp_path),
    ]
    settings = {**os.environ, "NUMBA_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    said = tmp_path / "stderr.txt"
    with (
        said.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=settings) as process,
    ):
        try:
            shown = ""
            while "Ctrl-C" not in shown:
                line = process.stdout.readline()
                assert line, process.wait(10)
                shown += line
            address = re.search(r"http://127\.0\.0\.1:\d+/", shown)[0]
            keys = dict(re.findall(r"key to (\w+): (dnk_\S+)", shown))
            assert set(keys) == set(SCOPES)

            def got(path, scope="ask"):
                headers = {"Authorization": f"Bearer {keys[scope]}"}
                request = urllib.request.Request(address + path, headers=headers)  # noqa: S310 - http
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - http
                    return answer.read().decode()

            assert "<title>deniable</title>" in got("")
            for _ in range(300):
                if '"reports":[{' in (status := got("v1/status", "operate")):
                    break
                time.sleep(0.1)
            assert re.search(r'"table":"orders","round":0,"reports":\d+', status)
            assert '"refused":{}' in status
            assert re.search(r'"table":"answers","round":0,"reports":\d+', status)
            assert '"name":"watts"' in got("v1/streams")
            survey, collector = re.search(r"(http://127\.0\.0\.1:\d+/)\?collector=(\S+)", shown).groups()
            assert unquote(collector) + "/" == address
            answer_survey(survey, address, tmp_path / "survey.json")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    assert said.read_text() == ""  # so that the keys stay in sight


def answer_survey(survey, address, specification):
    """What the page does: it takes its files and the specification from one address, and reports to the other."""

    def got(path):
        with urllib.request.urlopen(survey + path, timeout=30) as answer:  # noqa: S310 - http
            policy = answer.headers["Content-Security-Policy"]
            assert f"connect-src 'self' {address.rstrip('/')};" in policy
            return answer.read().decode()

    assert "How do you get to work?" in got("?collector=x")
    assert "survey.json" in got("survey.js")
    assert "color-scheme" in got("survey.css")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        got("../../pyproject.toml")
    specification.write_text(got("survey.json"))
    collection = Collection.load(specification)
    report = collection.client(user="me").report("answers", {"days": 5, "travel": "train", "content": 8})
    headers = {"Content-Type": "application/x-ndjson", "Origin": survey.rstrip("/")}
    body = report.to_json("me", "answers").encode()
    request = urllib.request.Request(f"{address}v1/collections/shop/reports", body, headers)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - http
        assert json.loads(answer.read())["accepted"] == 1
        assert answer.headers["Access-Control-Allow-Origin"] == survey.rstrip("/")


def test_the_page_is_that_of_the_example():
    built, example = Path(live_shop.__file__).parent / "survey_files", Path(__file__).parents[2] / "examples" / "web"
    for name in ("index.html", "survey.css"):
        assert (built / name).read_bytes() == (example / name).read_bytes()
    assert json.loads((example / "survey.json").read_text())["tables"] == [
        table for table in json.loads(live_shop.specification().to_json())["tables"] if table["name"] == "answers"
    ]


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    other = tmp_path / "collected"
    other.mkdir()
    (other / "mine.txt").write_text("kept")
    with pytest.raises(BadInput, match="was not written by this demonstration"):
        live_shop.make_room(other, live_shop.shop.specification())
    assert (other / "mine.txt").read_text() == "kept"
