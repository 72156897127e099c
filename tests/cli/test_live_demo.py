"""`deniable demo --serve`: devices report to a collector over HTTP, tables and a stream."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request

import pytest

from deniable.cli.demo import live_shop
from deniable.errors import BadInput


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
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=settings
    ) as process:
        try:
            shown = ""
            while "Ctrl-C" not in shown:
                line = process.stdout.readline()
                assert line, process.wait(10)
                shown += line
            address = re.search(r"http://127\.0\.0\.1:\d+/", shown)[0]
            keys = dict(re.findall(r"key to (\w+): (dnk_\S+)", shown))
            assert set(keys) == {"ask", "operate"}

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
            assert '"name":"watts"' in got("v1/streams")
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_a_folder_of_somebody_else_is_left_alone(tmp_path):
    other = tmp_path / "collected"
    other.mkdir()
    (other / "mine.txt").write_text("kept")
    with pytest.raises(BadInput, match="was not written by this demonstration"):
        live_shop.make_room(other, live_shop.shop.specification())
    assert (other / "mine.txt").read_text() == "kept"
