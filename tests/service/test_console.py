"""The console in Chromium: each page's main task against a live server with a real store."""

import json
import re
import shutil
import threading
import tomllib
from contextlib import contextmanager

import numpy as np
import pytest
import uvicorn

import deniable as dn
from asked_shop import SHOP, opened
from deniable.client import ToPLClient
from deniable.queries.answers.result import Estimate, Result
from deniable.service.application import application
from deniable.service.console_resource import console_file
from deniable.stores import DurablePublisher, StoredStream
from deniable.stores.collector.stream_log import StreamUpload

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
COUNT = "SELECT sex, COUNT(*) AS n FROM users GROUP BY sex"
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@contextmanager
def served(folder, **more):
    """(address, keys, collector) of a collector on a port; ends with the block."""
    collector, keys = opened(folder, **more)
    server = uvicorn.Server(uvicorn.Config(application(collector), port=0, log_config=None, ws="none"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        assert thread.is_alive()

    def stop():
        server.should_exit = True
        thread.join()

    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/", keys, collector, stop
    finally:
        stop()


def add_store(folder):
    """A stream that this server may see, with one series per key, in a store that another program wrote."""
    publisher = dn.streams.KeyedPublisher(1.0, 100, theta=80, horizon=1024, block=16, public_keys=True)
    with DurablePublisher(folder / "live" / "tills", publisher) as stream:
        stream.push_many(np.arange(900) * 37 % 90, keys=["north", "south"] * 450)


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    streams = {"meters": {"epsilon": 2.0, "bound": 100, "first": 200}}
    with served(tmp_path_factory.mktemp("console") / "collected", streams=streams) as (address, keys, collector, _):
        add_readings(collector.streams)
        add_store(collector.folder.path)
        collector.metrics.answered({"accepted": 150, "token": 3})
        yield address, keys, collector


def add_readings(log):
    """200 first reports, which choose the threshold, and 700 under it."""
    for numbers in (range(200), range(200, 900)):
        theta = log.state("meters").theta
        made = [ToPLClient(2.0, 100, name="meters").report(20 + number % 30, theta) for number in numbers]
        log.add(
            "meters", [StreamUpload(f"meter {n}", report.to_bytes()) for n, report in zip(numbers, made, strict=True)]
        )


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


class Tab:
    """A page with its keys, and a list of what must not happen: errors in the console, requests elsewhere."""

    def __init__(self, browser, address, keys, width=1600, scheme="light", scopes=("ask", "operate")):
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page, self.address, self.faults = self.context.new_page(), address, []
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda message: message.type == "error" and self.faults.append(message.text))
        self.page.on("pageerror", lambda failure: self.faults.append(str(failure)))
        self.page.on("request", self._requested)
        if scopes:
            chosen = json.dumps({scope: keys[scope] for scope in scopes})
            self.page.add_init_script(f"sessionStorage.setItem('deniable keys', JSON.stringify({chosen}))")

    def _requested(self, request):
        if not request.url.startswith((self.address, "blob:", "data:")):
            self.faults.append(f"asked {request.url}")

    def open(self, place):
        self.page.goto(f"{self.address}#{place}")
        return self.page

    def wide(self):
        return self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    def close(self, allowed=()):
        self.context.close()
        assert [fault for fault in self.faults if not any(word in fault for word in allowed)] == []


def write(page, text):
    """Put a text into the editor, as somebody with a keyboard does."""
    page.get_by_role("textbox", name="Question in SQL").focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(text)


LOOKS = [
    pytest.param((1600, "light"), id="wide-light"),
    pytest.param((390, "dark"), id="narrow-dark"),
    pytest.param((390, "light"), id="narrow-light", marks=pytest.mark.slow),
    pytest.param((1600, "dark"), id="wide-dark", marks=pytest.mark.slow),
]


@pytest.fixture(params=LOOKS)
def tab(browser, shop, request):
    """A page at both widths, light and dark: each main task is done in all of them."""
    address, keys, _ = shop
    width, scheme = request.param
    made = Tab(browser, address, keys, width=width, scheme=scheme)
    yield made
    made.close()


MOST_BYTES = 190_000
"""Of everything that a browser loads. The limit of the console is 300 kB."""
TRANSFERRED = """[...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
    .reduce((total, entry) => total + entry.transferSize, 0)"""


def test_files_are_small_and_the_policy_lets_nothing_else_in(browser, shop):
    total = sum(len(console_file(name).compressed) for name in ("index.html", "console.js", "console.css"))
    assert total <= MOST_BYTES
    made = Tab(browser, shop[0], shop[1])
    answer = made.page.goto(shop[0])
    made.page.get_by_role("heading", name="Ask").wait_for()
    assert 0 < made.page.evaluate(TRANSFERRED) <= MOST_BYTES + 10_000  # with the answers that the first page asks for
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "<script>" not in answer.text()
    inline = (
        "const script = document.createElement('script'); script.textContent = 'ran = 1'; document.head.append(script)"
    )
    made.page.evaluate(f"() => {{ {inline} }}")
    assert made.page.evaluate("window.ran === undefined")
    made.close(allowed=("Content Security Policy",))


@pytest.mark.parametrize("look", LOOKS)
def test_a_question_from_key_to_chart_to_files(browser, shop, look):
    address, keys, collector = shop
    made = Tab(browser, address, keys, width=look[0], scheme=look[1], scopes=())
    page = made.page
    page.goto(address)
    page.get_by_role("button", name="Enter a key").click()
    page.get_by_label("Key", exact=True).fill("dnk_wrong")
    page.get_by_role("button", name="Add key").click()
    page.get_by_role("alert").get_by_text("not known here").wait_for()
    page.get_by_label("Key", exact=True).fill(keys["ask"])
    page.get_by_role("button", name="Add key").click()
    write(page, COUNT)
    page.get_by_role("button", name="Ask", exact=True).click()
    cells = page.get_by_role("region", name="Answer, with 95 % intervals").get_by_role("row")
    cells.nth(2).wait_for()
    plain = dn.connect(collector.folder.path).sql(COUNT).answers["n"][0]
    shown = f"{plain.value:,.0f} ± {plain.stderr:,.0f}"
    assert cells.nth(1).inner_text().split("\t")[:2] == ["f", shown]
    page.get_by_role("img", name=re.compile("Chart of n by sex, with intervals")).wait_for()
    for button, name in (("CSV", "answer.csv"), ("Arrow", "answer.arrows"), ("PNG", "answer.png")):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Download {button}").click()
        assert saved.value.suggested_filename == name
        assert saved.value.path().stat().st_size > 50
    narrow = cells.nth(1).inner_text()
    page.get_by_label("All intervals hold at once").check()
    page.get_by_role("region", name="Answer, with 95 % intervals that all hold at once").wait_for()
    assert cells.nth(1).inner_text() != narrow
    page.get_by_label("Name for this question").fill("by sex")
    page.get_by_role("button", name="Keep").click()
    page.get_by_role("button", name="by sex", exact=True).wait_for()
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("region", name="How it is answered").get_by_text("m0 = count(*)").wait_for()
    assert "one liar moves n by" in page.get_by_role("region", name="How it is answered").inner_text()
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.get_by_role("region", name="Answer, with 95 % intervals that all hold at once").wait_for()
    made.close(allowed=("403",))


def test_the_editor_completes_and_marks_errors_and_notes_are_shown(tab):
    page = tab.open("ask")
    write(page, "")
    page.keyboard.type("SELECT COUNT(*) AS n FROM us")
    page.get_by_role("option", name="users").wait_for()
    page.keyboard.press("Escape")
    write(page, "SELECT COUNT(*) AS n FROM users WHERE sex = ")
    page.keyboard.press("Control+Space")
    page.get_by_role("option", name="'f'").wait_for()
    page.keyboard.press("Escape")
    write(page, "SELECT MAX(age) FROM users")
    page.keyboard.press("Control+Enter")
    page.get_by_role("alert").get_by_text("MAX is one person's value").wait_for()
    assert page.locator(".cm-lintRange-error").inner_text().startswith("MAX")
    write(page, "SELECT COUNT(*) AS n FROM users WHERE age > 400")
    page.keyboard.press("Control+Enter")
    page.get_by_role("list", name="About these numbers").get_by_text("400").wait_for()
    tab.faults[:] = [fault for fault in tab.faults if "400" not in fault]  # the refused question itself


def test_a_plan_follows_its_sliders_and_a_form(tab):
    page = tab.open("plan")
    errors = page.get_by_role("region", name="Standard error of each answer").get_by_role("row")
    errors.nth(1).wait_for()
    before = errors.last.inner_text()
    slider = page.get_by_label("ε for each person")
    assert slider.get_attribute("aria-valuetext") == "ε = 8; left protects more, right is more accurate"
    slider.focus()
    page.keyboard.press("Home")
    page.wait_for_function("before => document.querySelector('main').innerText.indexOf(before) < 0", arg=before)
    page.get_by_label("Questions, separated by semicolons").fill(
        "SELECT COUNT(*) AS young FROM users WHERE age < 25; SELECT 1 FROM x"
    )
    page.get_by_role("cell", name=re.compile("^young")).wait_for()
    page.get_by_text("Draw up a table in a form").click()
    page.get_by_role("button", name="Add the attribute").click()
    page.get_by_label("Questions, separated by semicolons").fill("SELECT COUNT(*) AS elder FROM people WHERE age > 60")
    page.get_by_role("cell", name=re.compile("^elder")).wait_for()
    page.get_by_role("button", name="Choose a design").click()
    page.get_by_text("Design grid").wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the specification").click()
    text = saved.value.path().read_text(encoding="utf-8")
    assert 'design = "grid"' in text
    assert dn.Collection.from_dict(tomllib.loads(text)).design == "grid"


@pytest.mark.parametrize("look", LOOKS)
def test_what_arrives_is_seen_and_rounds_are_opened(browser, shop, tmp_path, look):
    address, keys, collector = shop
    made = Tab(browser, address, keys, width=look[0], scheme=look[1])
    page = made.open("collect")
    page.get_by_role("region", name="Reports by table and round").get_by_role("cell", name="users").wait_for()
    assert page.get_by_role("region", name="Refused since the start").get_by_role("cell", name="token").is_visible()
    news = f"conflict_{look[0]}_{look[1]}"
    collector.metrics.answered({news: 7})
    page.get_by_role("cell", name=news).wait_for()  # without a reload
    made.close()
    rounds = SHOP.with_settings(rounds=dn.Rounds(3))
    with served(tmp_path / "rounds", collection=rounds, users=0) as (address, keys, collector, _):
        made = Tab(browser, address, keys, width=look[0], scheme=look[1])
        page = made.open("collect")
        page.get_by_text("No reports yet").wait_for()
        page.get_by_role("button", name="Open round 2").click()
        page.get_by_role("button", name="Close round 2").click()
        page.get_by_role("button", name="Open round 2").wait_for()
        assert collector.store.summary().rounds == {2: False}
        made.close()


def test_a_stream_shows_a_band_and_any_window(tab, shop):
    page = tab.open("streams")
    chart = page.get_by_role("img", name=re.compile("Mean of stream meters"))
    chart.wait_for()
    meters = page.get_by_role("region", name="Stream meters")
    meters.locator(".u-over").scroll_into_view_if_needed()
    box = meters.locator(".u-over").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.25, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 50, steps=4)
    page.mouse.up()
    page.get_by_text(re.compile(r"Values \d+ to \d+: sum [\d,]+ ± [\d,]+ \(95 %: ")).wait_for()
    meters.get_by_label("From value").fill("0")
    meters.get_by_label("to before").fill("100")
    meters.get_by_role("button", name="Sum of this window").click()
    total = shop[2].streams.server("meters").released.sum(0, 100)
    page.get_by_text(f"Values 0 to 100: sum {total.value:,.0f}").wait_for()
    assert page.get_by_text("ε = 2, once").is_visible()


def test_a_stream_of_a_store_is_shown_by_key(tab, shop):
    page = tab.open("streams")
    tills = page.get_by_role("region", name="Stream tills")
    tills.get_by_role("img", name=re.compile("Mean of stream tills")).wait_for()
    assert tills.get_by_text("ε = 1 for each").is_visible()
    with page.expect_response(re.compile("series")):  # a picture that comes meanwhile would move what is clicked
        tills.get_by_label("Key").select_option("south")
    tills.get_by_label("From value").fill("0")
    tills.get_by_label("to before").fill("100")
    tills.get_by_role("button", name="Sum of this window").click()
    total = StoredStream(shop[2].folder.path / "live" / "tills").by_key()["south"].sum(0, 100)
    shown = tills.get_by_text(re.compile("^Values 0 to 100: sum ")).first
    shown.wait_for()
    number = re.search(r"sum (-?[\d,.]+)", shown.inner_text())[1].replace(",", "")
    assert abs(float(number) - total.value) <= 1  # a browser rounds halves up, and the stream is drawn anew every time


def test_the_promise_in_words_and_to_sign(tab):
    page = tab.open("privacy")
    page.get_by_role("heading", name="What shop promises").wait_for()
    for stream in ("meters", "tills"):
        page.get_by_role("heading", name=f"What the stream {stream} promises").wait_for()
    assert page.get_by_role("heading", name="Who is protected").count() == 3
    total = page.get_by_role("region", name="Charges over a lifetime").get_by_role("row").last
    assert total.inner_text().split() == ["all", "together", "10"]
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download the page to sign").click()
    assert "Signature" in saved.value.path().read_text(encoding="utf-8")


def test_everything_can_be_done_with_the_keyboard(tab):
    page = tab.open("privacy")
    page.get_by_role("heading", name="What shop promises").wait_for()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#ask"
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Ask").wait_for()
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.getAttribute('aria-label')") == "Question in SQL":
            break
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT COUNT(*) AS everybody FROM users")
    page.keyboard.press("Escape")
    page.keyboard.press("Control+Enter")
    page.get_by_role("columnheader", name="everybody", exact=True).wait_for()


@pytest.mark.parametrize(
    ("width", "scheme", "looks"),
    [
        (390, "dark", True),
        (1600, "light", False),
        *(
            pytest.param(width, scheme, True, marks=pytest.mark.slow)
            for width in (390, 1600)
            for scheme in ("light", "dark")
        ),
    ],
)
def test_pages_fit_and_have_no_serious_findings(browser, shop, width, scheme, looks):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
    made = Tab(browser, shop[0], shop[1], width=width, scheme=scheme)
    places = {
        f"ask?sql={COUNT.replace(' ', '+')}": "Answer, with",
        "plan": "Predicted errors",
        "collect": "Reports stored",
        "streams": "Drag to choose",
        "privacy": "Sign-off",
    }
    for place, words in places.items():
        page = made.open(place)
        page.get_by_text(words).first.wait_for()
        assert made.wide() <= 0, (place, width)
        if looks:
            findings = axe.Axe().run(page).response["violations"]
            serious = [entry for entry in findings if entry["impact"] in ("serious", "critical")]
            assert [(entry["id"], entry["nodes"][0]["html"]) for entry in serious] == [], place
    made.close()


def test_what_goes_wrong_says_what_to_do(browser, shop, tmp_path):
    with served(tmp_path / "stopping", users=20) as (address, keys, collector, stop):
        made = Tab(browser, address, keys)
        page = made.open("ask")
        write(page, COUNT)
        collector.keys.change(lambda before: before.without("asker"))
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_role("alert").get_by_text("deniable key add").wait_for()
        stop()
        page.get_by_role("button", name="Ask", exact=True).click()
        page.get_by_role("alert").get_by_text("The server does not answer").wait_for()
        made.close(allowed=("403", "ERR_CONNECTION", "Failed to load"))


def test_an_expired_key_is_named_and_another_one_helps(browser, shop, monkeypatch):
    address, keys, collector = shop
    made = []

    def add(before):
        changed, text = before.with_key("visitor", "ask", 1_000)
        made.append(text)
        return changed

    collector.keys.change(add)
    monkeypatch.setattr(collector, "now", lambda: 999)
    tab = Tab(browser, address, {"ask": made[0]}, scopes=("ask",))
    page = tab.open("ask")
    write(page, COUNT)
    page.get_by_text("Tables and columns").wait_for()
    monkeypatch.setattr(collector, "now", lambda: 1_000)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("alert").get_by_text("The key visitor expired on 1970-01-01").wait_for()
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Key", exact=True).fill(keys["ask"])
    page.get_by_role("button", name="Add key").click()
    page.get_by_role("columnheader", name="n", exact=True).wait_for()  # the question was still there
    tab.close(allowed=("403",))


def test_tables_and_columns_are_listed(browser, shop):
    address, keys, _ = shop
    tab = Tab(browser, address, keys)
    page = tab.open("ask")
    page.get_by_text("Tables and columns").click()
    page.get_by_role("region", name="users").get_by_role("cell", name="sex", exact=True).wait_for()
    assert "[object" not in page.inner_text("main")
    tab.close()


def test_a_long_answer_shows_its_first_rows(browser, shop, monkeypatch):
    rows = 60_000
    long = Result({"number": range(rows)}, {"n": (Estimate(7.0, 0.5),) * rows})
    monkeypatch.setattr(dn.Database, "answer", lambda *_: long)
    made = Tab(browser, shop[0], shop[1])
    page = made.open("ask")
    write(page, COUNT)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_text("The first 500 of 60,000 rows are shown").wait_for()
    made.close()
