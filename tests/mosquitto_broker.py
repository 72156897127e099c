"""A real MQTT broker for tests: mosquitto on a free port of this machine, which can be killed and started again."""

import shutil
import signal
import socket
import subprocess
import time
from contextlib import suppress

import pytest


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Mosquitto:
    """A broker that writes its sessions to the disk at every change."""

    def __init__(self, folder):
        self._program = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
        if self._program is None:
            pytest.skip("no mosquitto here. Install Debian's package mosquitto")
        folder.mkdir()
        self.port, self._settings = _free_port(), folder / "mosquitto.conf"
        lines = (
            f"listener {self.port} 127.0.0.1", "allow_anonymous true", "persistence true",
            f"persistence_location {folder}/", "autosave_on_changes true", "autosave_interval 1",
            "log_dest none", "user root", "max_queued_messages 100000",
        )  # fmt: skip
        self._settings.write_text("\n".join(lines) + "\n")
        self.start()

    def start(self):
        self._process = subprocess.Popen([self._program, "-c", self._settings], stderr=subprocess.DEVNULL)
        ends = time.monotonic() + 60
        while time.monotonic() < ends:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise AssertionError("mosquitto does not start")

    def stop(self, how=signal.SIGTERM):
        self._process.send_signal(how)
        self._process.wait(60)

    def kill(self):
        self.stop(signal.SIGKILL)
