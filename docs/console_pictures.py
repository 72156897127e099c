"""Takes the pictures of the console, from the collector that `deniable demo` leaves in demo/collected.

`make pictures` runs both. Chromium and Playwright are needed, as for the tests of the console.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).parent / "images"
DENIABLE = Path(sys.executable).with_name("deniable")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PORT = 8719
ADDRESS = f"http://127.0.0.1:{PORT}/"
QUESTION = "SELECT round, category, COUNT(*) AS orders FROM orders GROUP BY round, category"
SCOPES = ("ask", "operate")
WIDTH, COLOURS = 1280, 48
PLACES = (
    ("ask", "Answer, with 95 % intervals", 860),
    ("plan", "Standard error of each answer", 900),
    ("collect", "Reports by table", 860),
    ("streams", "Mean of every", 700),
)
"""Pages, a text that is there once they are complete, and their heights."""


def key(folder: Path, scope: str) -> str:
    """A key of a scope, which is removed with `forget`."""
    forget(folder, scope)
    added = subprocess.run(  # noqa: S603 - our own program
        [DENIABLE, "key", "add", folder, f"picture_{scope}", "--scope", scope],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return next(word for word in added.stdout.split() if word.startswith("dnk_"))


def forget(folder: Path, scope: str) -> None:
    """Revoke the key of a scope, if there is one."""
    command = [DENIABLE, "key", "revoke", folder, f"picture_{scope}"]
    subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - our own program


def answers() -> bool:
    """Whether the collector is up."""
    try:
        return urllib.request.urlopen(ADDRESS, timeout=5).status == 200
    except OSError:
        return False


def opened(browser: Any, keys: dict[str, str], place: str, height: int) -> Any:
    """A page of the console, as somebody sees it who has entered both keys."""
    page = browser.new_page(viewport={"width": WIDTH, "height": height}, color_scheme="light")
    page.set_default_timeout(120_000)
    page.add_init_script(f"sessionStorage.setItem('deniable keys', {json.dumps(json.dumps(keys))})")
    page.goto(f"{ADDRESS}#{place}")
    return page


def asked(page: Any) -> None:
    """Type the question, and wait for its answer."""
    page.get_by_role("textbox", name="Question in SQL").focus()
    page.keyboard.press("Control+a")
    page.keyboard.press("Delete")
    page.keyboard.insert_text(QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("region", name="Answer, with 95 % intervals").get_by_role("row").nth(3).wait_for()


def take(browser: Any, keys: dict[str, str]) -> None:
    """All pictures, each as soon as everything has been drawn."""
    for place, wait, height in PLACES:
        page = opened(browser, keys, place, height)
        if place == "ask":
            asked(page)
        page.get_by_text(wait).first.wait_for()
        page.wait_for_timeout(1_500)
        drawn = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        drawn.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"console-{place}.png", optimize=True)
        page.close()


if __name__ == "__main__":
    collected = Path(sys.argv[1] if len(sys.argv) > 1 else "demo/collected")
    made = {scope: key(collected, scope) for scope in SCOPES}
    server = subprocess.Popen([DENIABLE, "serve", collected, "--port", str(PORT)])  # noqa: S603 - our own program
    try:
        while not answers() and server.poll() is None:
            time.sleep(0.2)
        with sync_playwright() as driver:
            flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
            take(driver.chromium.launch(executable_path=CHROMIUM, args=flags), made)
    finally:
        server.terminate()
        server.wait()
        for scope in SCOPES:
            forget(collected, scope)
