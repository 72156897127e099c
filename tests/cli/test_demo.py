"""The demonstration as a newcomer meets it: in 80 columns, without colour, with a page that needs nothing else."""

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import pytest

from command_line import DENIABLE, PATHS, run
from deniable.cli.demo import meters, pictures, shop, story
from deniable.cli.demo.attacks import share_guessed
from deniable.cli.demo.fleet import bodies, reports_in
from deniable.cli.demo.running_collector import RunningCollector
from deniable.collection import Collection
from deniable.errors import Failure, MissingExtra
from deniable.randomness import SeededSource


def demo(folder, *arguments):
    """The demonstration in a process of its own, as `make demo` starts it."""
    plain = {"PATH": f"{Path(DENIABLE).parent}:/usr/bin:/bin", "COLUMNS": "80", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    plain |= {**PATHS, "HOME": str(folder), "NUMBA_NUM_THREADS": "1", "MPLCONFIGDIR": matplotlib.get_cachedir()}
    return subprocess.run([DENIABLE, *arguments], capture_output=True, text=True, check=False, env=plain, cwd=folder)


def serving(folder):
    """Processes that serve something below a folder."""
    commands = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if os.access(path, os.R_OK)]
    return [command for command in commands if b"serve" in command and str(folder).encode() in command]


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("newcomer")
    done = demo(folder, "demo", "--users", "20000", "--seed", "1", "-o", str(folder / "demo"))
    assert (done.returncode, done.stderr.strip()) == (0, story.LABEL)
    return folder, done.stdout


def test_it_fits_80_columns_without_colour_and_leaves_nothing_running(shown):
    folder, text = shown
    assert "\x1b" not in text
    printed, _, commands = text.partition("Written:")
    assert max(len(line.rstrip()) for line in printed.splitlines()) <= 80
    for expected in ("truth", "estimate", "95 % interval", *(title for title, _ in shop.QUESTIONS), "one liar"):
        assert expected in text
    assert "The console" in commands
    assert not serving(folder)


def test_nothing_is_lost_though_the_collector_is_killed(shown):
    weeks = re.findall(r"^ ([123]) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+) +([\d,]+)", shown[1], re.M)
    assert len(weeks) == 3
    assert all(sent == stored for _, sent, stored, *_ in weeks)
    assert int(weeks[1][4]) > 0  # requests that were sent again
    words = " ".join(shown[1].split())
    acknowledged, on_disk = re.search(
        r"([\d,]+) reports of the week had been .*? and ([\d,]+) were on the disk", words
    ).groups()
    assert int(acknowledged.replace(",", "")) <= int(on_disk.replace(",", ""))


def test_the_attack_succeeds_on_the_straw_man_and_gains_nothing_on_reports(shown):
    shares = [float(share) for share in re.findall(r"report.*? ([\d.]+)%\s*$", shown[1], flags=re.M)]
    straw_man, deniable, nothing = shares
    assert straw_man == 100
    assert deniable == nothing < 30
    assert "The promise is not refuted" in " ".join(shown[1].split())


def test_lies_are_refused_the_shift_is_noticed_and_the_ledger_holds(shown):
    words = " ".join(shown[1].split())
    assert "is refused (coins), and so is a second report (conflict)" in words
    assert "the stream had learnt a new θ" in words
    assert "4 of 5, 1 left, after 3 weeks" in words
    assert "asks for ε = 2, above 1, what is left of 5. Nothing was drawn, charged or sent." in words


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
    assert len(page.addresses) == page.tags.count("img") == 5
    assert all(address.startswith("data:image/png;base64,iVBORw0KGgo") for address in page.addresses)
    assert not {"script", "link", "iframe"} & set(page.tags)
    assert "url(" not in text
    assert "@import" not in text
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.metas
    assert "max-width" in text
    assert all(title.endswith("?") for title in re.findall(r"<h[12]>(.*?)</h[12]>", text))
    assert len(list((shown[0] / "demo").glob("*.png"))) == 5


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
    done = run("serve", "demo/collected", "--check")
    assert done.returncode == 0


def test_it_replaces_its_own_reports_and_touches_none_of_others(shown, tmp_path, monkeypatch):
    folder = shutil.copytree(shown[0], tmp_path / "copy")
    monkeypatch.chdir(folder)
    specification = folder / "demo" / "collected" / "collection.json"
    kept = specification.read_bytes()
    other = Collection(*shop.specification().tables, epsilon=1.0)
    other.save(specification)
    refused = run("demo", "--users", "20000")
    assert refused.returncode == 2
    assert "was not written by this demonstration. Nothing was drawn or written. Name another folder" in refused.stderr
    assert Collection.load(specification) == other
    specification.write_bytes(kept)
    story._make_room(folder / "demo", shop.specification())
    assert not (folder / "demo" / "collected").exists()


def test_a_folder_of_somebody_else_is_left_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "report.html").write_text("mine")
    done = run("demo")
    assert done.returncode == 2
    assert "'demo' exists and was not written by this demonstration. Nothing was drawn or written" in done.stderr
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["report.html"]


def test_without_matplotlib_nothing_is_drawn(tmp_path, monkeypatch):
    def missing():
        raise MissingExtra("matplotlib", "plot")

    monkeypatch.setattr(pictures, "require_plotting", missing)
    assert pictures.draw_all(tmp_path, (), None, None, None, None) == {}
    assert not list(tmp_path.iterdir())


def test_without_a_server_it_says_what_to_install_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.chdir(tmp_path)
    done = run("demo")
    assert done.returncode == 1
    assert "pip install 'deniable[serve]'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_too_few_people_are_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run("demo", "--users", "10")
    assert done.returncode == 2
    assert "Nothing was drawn" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_collector_that_does_not_start_is_a_failure(tmp_path):
    with pytest.raises(Failure, match="the collector did not start"):
        RunningCollector(tmp_path / "nothing").start()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_interrupted_it_leaves_nothing_running(tmp_path, number):
    command = [DENIABLE, "demo", "--users", "20000", "-o", str(tmp_path / "demo")]
    settings = {**os.environ, "NUMBA_NUM_THREADS": "1", "HOME": str(tmp_path)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=settings, start_new_session=True
    ) as process:
        for _ in range(1200):
            if serving(tmp_path / "demo" / "collected") or process.poll() is not None:
                break
            time.sleep(0.05)
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == 128 + number
    assert not serving(tmp_path / "demo" / "collected")


def test_requests_carry_the_reports_of_those_whose_turn_it_is():
    collection, people = shop.specification(), shop.made_up(300)
    weeks = [bodies(collection, week, people, 20, SeededSource(1), simulation=True) for week in (1, 2, 3)]
    assert sum(map(reports_in, weeks)) == 2 * 280
    assert weeks[0][0][2:10] > b"p0000019"


def test_the_frequency_attack_guesses_the_likeliest():
    assert share_guessed(np.array([1, 1, 1, 1]), np.array([0, 0, 0, 5])) == 0.75


def test_made_up_people_fit_their_domains_and_need_no_truncation():
    made = shop.made_up(20_000, week=3)
    assert made.orders_per_user.max() <= shop.MOST_ORDERS
    assert (made.orders_per_user == 0).mean() > 0.15
    users, orders = made.from_person(0)
    inspected = shop.specification().inspect(users=users.drop_columns(["city"]), orders=orders)
    assert all(not inspection.problems for inspection in inspected.values())
    watts = meters.made_up()
    assert watts.size == meters.READINGS
    assert 0 <= watts.min() <= np.median(watts) <= watts.max() <= meters.MOST_WATTS


def test_the_views_of_the_shop_suit_its_questions():
    fitted, usual = shop.specification(), shop.specification().with_settings(design="hio", grids=None)
    for _, sql in shop.QUESTIONS[:2]:
        errors = [collection.forecast(sql, 200_000).scalar().stderr for collection in (fitted, usual)]
        assert errors[0] < 0.7 * errors[1]
