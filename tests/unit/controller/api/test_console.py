"""The console's files from a real controller: open to all, with headers that let them load nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controller.console import PAGE, find_files
from controller.console.static import CHARTS, HEADERS, OVER_TLS
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from tests.support.controller.api.cases import assert_problem

NO_TOKEN = {"Authorization": None}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    api = {"metrics_port": free_port()}
    controller = Controller(tmp_path_factory.mktemp("console"), api=api).start()
    yield controller
    controller.stop()


def get(yard: Controller, path: str, **headers: str) -> Any:
    return yard.call("GET", path, headers=NO_TOKEN | headers)


def test_the_page_needs_no_token_and_loads_nothing_from_elsewhere(yard: Controller) -> None:
    page = get(yard, "/")
    assert page.status_code == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.content.replace(b' data-token="asked"', b"") == find_files()[PAGE].read_bytes()
    assert b'data-token="asked"' in page.content, "it asks at once, and makes no call that is refused"
    assert page.headers.items() >= HEADERS.items()
    assert OVER_TLS.keys().isdisjoint(page.headers), "without TLS browsers complain of them"
    assert "script-src 'self';" in page.headers["Content-Security-Policy"]
    assert "unsafe" not in page.headers["Content-Security-Policy"]


@pytest.mark.parametrize("name", [*find_files(), CHARTS])
def test_each_file_is_served_with_its_type_and_once(yard: Controller, name: str) -> None:
    sent = get(yard, f"/console/{name}")
    assert sent.status_code == 200
    assert sent.headers["Content-Encoding"] == "gzip", "requests asks for it"
    assert sent.headers.items() >= HEADERS.items()
    if name in find_files():
        assert sent.content == find_files()[name].read_bytes()
    kind = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
    assert sent.headers["Content-Type"].startswith(kind[name.rpartition(".")[2]])
    again = get(yard, f"/console/{name}", **{"If-None-Match": sent.headers["ETag"]})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", sent.headers["ETag"])
    assert again.headers["Content-Security-Policy"] == HEADERS["Content-Security-Policy"]


def test_a_head_has_no_body(yard: Controller) -> None:
    head = yard.call("HEAD", "/", headers=NO_TOKEN | {"Accept-Encoding": "identity"})
    assert (head.status_code, head.content) == (200, b"")
    assert int(head.headers["Content-Length"]) == len(get(yard, "/").content)


@pytest.mark.parametrize(
    "path",
    ["none.js", "__init__.py", "static.py", "js/", "../api/auth.py", "%2e%2e/api/auth.py", "..%2f..%2fsetup.cfg",
     "/etc/passwd", "%2fetc%2fpasswd", "js%00.js", ".", "vendor/"],
)  # fmt: skip
def test_nothing_else_is_there(yard: Controller, path: str) -> None:
    answer = yard.raw(f"GET /console/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 ")), answer[:80]
    assert b"the console has no file" in answer or b"400" in answer[:20]


def test_files_are_only_read(yard: Controller) -> None:
    for method in ("PUT", "POST", "DELETE"):
        assert_problem(yard.call(method, "/"), 405, f"{method} does not apply here")


def test_the_address_for_monitoring_has_no_console(yard: Controller) -> None:
    url = f"http://127.0.0.1:{yard.settings['api']['metrics_port']}"
    for path in ("/", f"/console/{PAGE}"):
        assert yard.session.get(url + path, timeout=10).status_code == 404


def test_reading_the_console_leaves_no_record(yard: Controller) -> None:
    get(yard, "/console/none.js")
    get(yard, "/")
    records = yard.call("GET", "/v1/audit").json()["records"]
    paths = {record["path"] for record in records} - {None}
    assert not [path for path in paths if path == "/" or path.startswith("/console")]
