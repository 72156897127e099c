"""The demonstration as a newcomer meets it: in 80 columns, without colour, with a page that needs nothing else."""

import re
import shlex
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from command_line import DENIABLE, run
from deniable.cli.demo import meters, shop, story
from deniable.collection import Collection
from deniable.errors import MissingExtra


def demo(folder, *arguments):
    """The demonstration in a process of its own, as `make demo` starts it."""
    plain = {"PATH": f"{Path(DENIABLE).parent}:/usr/bin:/bin", "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    return subprocess.run([DENIABLE, *arguments], capture_output=True, text=True, check=False, env=plain, cwd=folder)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("newcomer")
    done = demo(folder, "demo", "--users", "20000", "--seed", "1")
    assert (done.returncode, done.stderr.strip()) == (0, "collecting, asking, publishing")
    return folder, done.stdout


def test_it_fits_80_columns_without_colour(shown):
    _, text = shown
    assert "\x1b" not in text
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 80
    for expected in ("truth", "estimate", "95 % interval", "Mean order of singles", "Orders by category", "a day"):
        assert expected in text


def test_the_attack_succeeds_on_the_straw_man_and_gains_nothing_on_reports(shown):
    shares = [float(share) for share in re.findall(r"report.*? ([\d.]+)%\s*$", shown[1], flags=re.M)]
    straw_man, deniable, nothing = shares
    assert straw_man == 100
    assert deniable == nothing < 30


class Outside(HTMLParser):
    """Every address that a page asks for."""

    def __init__(self):
        super().__init__()
        self.addresses, self.tags, self.metas = [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.tags.append(tag)
        self.addresses += [value for name, value in given.items() if name in ("src", "href", "data", "srcset")]
        if tag == "meta":
            self.metas.append(given)
        if tag == "img":
            assert given["alt"]


def test_the_page_holds_its_pictures_and_asks_for_nothing(shown):
    text = (shown[0] / "demo" / "report.html").read_text(encoding="utf-8")
    page = Outside()
    page.feed(text)
    assert len(page.addresses) == page.tags.count("img") == 3
    assert all(address.startswith("data:image/png;base64,iVBORw0KGgo") for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.metas
    assert "max-width" in text
    for name in story.PICTURES:
        assert (shown[0] / "demo" / name).read_bytes().startswith(b"\x89PNG")


def test_the_three_commands_at_the_end_work(shown, monkeypatch):
    folder, text = shown
    monkeypatch.chdir(folder)
    commands = text.partition("Try next:\n")[2].splitlines()
    assert len(commands) == 3
    for line in commands:
        name, *arguments = shlex.split(line)
        assert name == "deniable"
        done = run(*arguments)
        assert done.returncode == 0, line
    assert "95% interval" in done.stdout


def test_it_replaces_its_own_reports_and_touches_none_of_others(shown, monkeypatch):
    folder, _ = shown
    monkeypatch.chdir(folder)
    specification = folder / "demo" / "reports" / "collection.json"
    other = Collection(*shop.specification().tables, epsilon=1.0)
    other.save(specification)
    refused = run("demo", "--users", "20000")
    assert refused.returncode == 2
    assert "was not written by this demonstration. Nothing was drawn or written. Name another folder" in refused.stderr
    assert Collection.load(specification) == other


def test_a_folder_of_somebody_else_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "report.html").write_text("mine")
    done = run("demo")
    assert done.returncode == 2
    assert "'demo' exists and was not written by this demonstration. Nothing was drawn or written" in done.stderr
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["report.html"]


def test_without_matplotlib_it_tells_the_same_and_how_to_get_pictures(tmp_path, monkeypatch):
    def missing():
        raise MissingExtra("matplotlib", "plot")

    monkeypatch.setattr(story, "require_plotting", missing)
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--users", 20_000, "--seed", 2).returncode == 0
    text = run("demo", "--users", 20_000, "--seed", 2).stdout  # once more, over what the first run wrote
    assert "without pictures" in text
    assert "pip install 'deniable[plot]'" in text
    assert not list(tmp_path.rglob("*.png"))
    assert "<img" not in (tmp_path / "demo" / "report.html").read_text()


def test_too_few_people_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo", "--users", "10")
    assert done.returncode == 2
    assert "Nothing was drawn" in done.stderr
    assert not list(tmp_path.iterdir())


def test_made_up_people_fit_their_domains_and_need_no_truncation():
    made = shop.made_up(20_000)
    assert made.orders_per_user.max() <= shop.MOST_ORDERS
    assert (made.orders_per_user == 0).mean() > 0.15
    collected = shop.specification().perturb(users=made.users, orders=made.orders)
    assert all(not summary.rejected for summary in collected.summaries.values())
    watts = meters.made_up()
    assert watts.size == meters.READINGS
    assert 0 <= watts.min() <= np.median(watts) <= watts.max() <= meters.MOST_WATTS
