"""The files for a deployment: they parse, name what exists, and give nobody more than they need."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
import yaml

from deniable.cli.main import cli
from deniable.service.settings import ENVIRONMENT, ServeSettings

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"


def parsed(words):
    """A command line of a file, as `deniable` reads it; nothing is run."""
    command = cli.get_command(click.Context(cli), words[0])
    return command.make_context(words[0], list(words[1:])).params


def test_the_compose_file_has_collectors_a_database_and_a_proxy():
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert set(services) == {"init", "collector-1", "collector-2", "database", "proxy"}
    made = parsed(services["init"]["command"])
    assert (made["specification"], made["store"]) == ("/shop.toml", "postgresql://collector@database/collector")
    for name in ("collector-1", "collector-2", "init"):
        service = services[name]
        assert (service["read_only"], service["cap_drop"], "ports" in service) == (True, ["ALL"], False)
        for setting in service["environment"]:
            known = setting.removeprefix(ENVIRONMENT).lower()
            assert not setting.startswith(ENVIRONMENT) or hasattr(ServeSettings(), known)
    # Only the proxy can be reached from outside.
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert compose["networks"]["inside"] == {"internal": True}
    for service in services.values():
        for secret in service.get("secrets", []):
            assert secret in compose["secrets"]
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            assert source.startswith("./") or source in compose["volumes"]


def test_the_image_runs_as_nobody_in_particular():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    last = text[text.rindex("FROM ") :]
    assert re.search(r"^USER collector$", last, re.M)
    command = re.search(r"^CMD \[(.*)\]$", last, re.M)[1].replace('"', "").split(", ")
    assert parsed(command)["folder"] == "/data/collected"
    assert "HEALTHCHECK" in last
    for path in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M):
        assert all((DEPLOY.parent / name).exists() for name in path.split())
    assert "[serve,postgresql]" in text
    # What the build needs is copied, and is not left out on the way to the builder.
    copied = {name for names in re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.M) for name in names.split()}
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {"pyproject.toml", project["project"]["readme"], *project["project"]["license-files"]}
    assert copied >= needed | {hook["path"] for hook in project["tool"]["hatch"]["build"]["hooks"].values()}
    assert copied <= set((DEPLOY.parent / ".dockerignore").read_text(encoding="utf-8").replace("!", "").split())


def test_the_proxy_vouches_for_nobody_and_keeps_no_log():
    text = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    assert 'proxy_set_header Deniable-User "";' in text
    assert "access_log off;" in text
    assert text.count("{") == text.count("}")


def test_the_unit_is_valid(tmp_path):
    text = (DEPLOY / "deniable-collector.service").read_text(encoding="utf-8")
    for line in re.findall(r"^ExecStart(?:Pre)?=/opt/deniable/bin/deniable (.*)$", text, re.M):
        assert parsed(line.split())["folder"] == "/var/lib/deniable/collected"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here")
    unit = tmp_path / "deniable-collector.service"
    unit.write_text(text.replace("/opt/deniable/bin/deniable", sys.executable), encoding="utf-8")
    ended = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)  # noqa: S607
    assert unit.name not in ended.stderr, ended.stderr


def test_the_warm_up_of_the_image_works(tmp_path):
    """The specification that the Dockerfile writes is one."""
    from deniable.collection import Collection

    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    (written,) = re.findall(r"printf '(.*?)'", text)
    (tmp_path / "warm.toml").write_text(written.replace("\\n", "\n"), encoding="utf-8")
    assert Collection.load(tmp_path / "warm.toml").coins == "assigned"
