"""Pages of other origins: only those that are listed may report, and only what devices ask for is allowed."""

import asyncio

import pytest

from asgi import REPORTS, Served, report_of, request
from deniable.errors import InvalidParameter
from deniable.service.settings import ServeSettings, load_settings

PAGE = "https://shop.example"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "content-type"}
LEAVE = "access-control-allow-origin"


def ask(served, method, path, headers):
    return asyncio.run(request(served.app, method, path, headers=headers))


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "collected", origins=(PAGE,))
    yield made
    made.close()


def test_a_listed_page_may_ask_and_report(served):
    asked = ask(served, "OPTIONS", REPORTS, {"origin": PAGE, **PREFLIGHT})
    assert (asked.status, asked.headers[LEAVE], asked.headers["access-control-allow-methods"]) == (204, PAGE, "POST")
    assert asked.headers["access-control-allow-headers"] == "authorization, content-type"
    sent = served.send(("7", report_of("7")), headers={"origin": PAGE})
    assert (sent.json["accepted"], sent.headers[LEAVE], sent.headers["vary"]) == (1, PAGE, "Origin")
    assert sent.headers["access-control-expose-headers"] == "Retry-After"
    described = ask(served, "GET", REPORTS.removesuffix("/reports"), {"origin": PAGE})
    assert (described.status, described.headers[LEAVE]) == (200, PAGE)
    assert not any("credentials" in name for name in {**asked.headers, **sent.headers, **described.headers})


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://shop.example", f"{PAGE}:444", "null", "*", "", f"{PAGE}.evil.example"]
)
def test_other_pages_get_no_leave(served, origin):
    asked = ask(served, "OPTIONS", REPORTS, {"origin": origin, **PREFLIGHT})
    assert (asked.status, LEAVE in asked.headers) == (405, False)
    described = ask(served, "GET", REPORTS.removesuffix("/reports"), {"origin": origin})
    assert LEAVE not in described.headers


@pytest.mark.parametrize("path", ["/v1/sql", "/v1/explain", "/metrics", "/v1/collections/shop/reports/more", "/"])
def test_pages_get_no_leave_for_what_devices_do_not_ask(served, path):
    asked = ask(served, "OPTIONS", path, {"origin": PAGE, **PREFLIGHT})
    assert asked.status in (404, 405)
    assert LEAVE not in asked.headers


def test_nobody_gets_leave_by_default(tmp_path):
    served = Served(tmp_path / "collected")
    assert LEAVE not in ask(served, "OPTIONS", REPORTS, {"origin": PAGE, **PREFLIGHT}).headers
    served.close()


@pytest.mark.parametrize("origin", ["*", "null", "shop.example", f"{PAGE}/", "https://Shop.example", "ftp://a.b", ""])
def test_what_is_not_an_origin_is_refused(origin):
    with pytest.raises(InvalidParameter, match="not an origin"):
        ServeSettings(origins=(origin,))


def test_origins_come_from_flags_files_and_the_environment(tmp_path):
    (tmp_path / "serve.toml").write_text(f'origins = ["{PAGE}"]\n')
    assert load_settings(tmp_path / "serve.toml", {}, {}).origins == (PAGE,)
    assert (
        load_settings(None, {}, {"DENIABLE_SERVE_ORIGINS": f"{PAGE}, http://[::1]:80"}).origins[1] == "http://[::1]:80"
    )
    assert load_settings(None, {"origins": (PAGE,)}, {}).origins == (PAGE,)
