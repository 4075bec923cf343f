"""``trainyard console`` as a process: recorded runs in a browser of this machine, and the address of a controller."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from controller.cli.console.command import MOST
from controller.console import PAGE, find_files
from controller.console.static import CHARTS, HEADERS
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from tests.support.controller.cli.console_process import Console

EVENT = '{"id": 1, "event": "plan", "time": 2.5, "data": {"policy": "fair"}}\n'
Run = Callable[..., Console]


@pytest.fixture
def run() -> Iterator[Run]:
    with ExitStack() as stack:

        def started(*arguments: str | Path, **variables: str) -> Console:
            console = Console(*arguments, "--no-browser", **variables)
            stack.callback(console.process.communicate)
            stack.callback(console.process.kill)
            return console

        yield started


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    for arm in ("jpas", "fair"):
        folder = tmp_path / "demo" / "arms" / "demo-1" / arm
        folder.mkdir(parents=True)
        (folder / "events.jsonl").write_text(EVENT.replace("fair", arm))
    (folder / "facts.json").write_text('{"title": "fair sharing", "seconds": 40}')
    return tmp_path / "demo"


def refused(*arguments: str | Path) -> str:
    """Returns the one line that a wrong input gets."""
    command = [sys.executable, "-m", "controller.cli.main", "console", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    return done.stderr


def test_recorded_runs_are_listed_and_served(run: Run, demo: Path) -> None:
    console = run(demo)
    assert console.first["recordings"] == ["arms/demo-1/fair", "arms/demo-1/jpas"]
    fair, jpas = console.get("/recordings").json()["recordings"]
    assert fair == {
        "name": "arms/demo-1/fair", "title": "fair sharing", "policy": "fair", "seconds": 40.0, "events": 1,
        "parts": [0.0], "has_facts": True, "has_explanations": False,
    }  # fmt: skip
    assert (jpas["title"], jpas["has_facts"]) == ("arms/demo-1/jpas", False)
    assert console.get("/recordings/0/part/0").text == EVENT
    assert console.get("/recordings/0/state/0").json() == {"events": [], "log": [], "lines": [], "classes": []}
    assert console.get("/recordings/0/facts").json()["seconds"] == 40
    for path in (
        "/recordings/1/facts",
        "/recordings/2/part/0",
        "/recordings/0/part/1",
        "/recordings/0/part",
        "/recordings/0/state/-1",
        "/recordings/0/explanation?job=a&until=1",
        "/recordings/0/",
        "/recordings/-1/facts",
        "/recordings/[/facts",
    ):
        assert console.get(path).status_code == 404
    status, said = console.end()
    assert (status, said) == (130, "")


def test_the_page_knows_that_it_shows_recordings(run: Run, demo: Path) -> None:
    console = run(demo)
    page = console.get("/")
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert page.text == find_files()[PAGE].read_text().replace('data-source="live"', 'data-source="recorded"')
    assert page.text.count('data-source="recorded"') == 1
    for name in (*find_files(), CHARTS):
        file = console.get(f"/console/{name}")
        assert file.status_code == 200
        again = console.get(f"/console/{name}", **{"If-None-Match": file.headers["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
        for answer in (file, again, page):
            assert answer.headers.items() >= HEADERS.items()
    head = console.get("/", "HEAD")
    assert (head.status_code, head.content) == (200, b"")


def test_nothing_else_on_the_disk_is_served(run: Run, demo: Path) -> None:
    (demo / "arms" / "demo-1" / "fair" / "secret").write_text("secret")
    console = run(demo)
    for path in ("/recordings/0/secret", "/recordings/0/../../secret", "/console/../server.py", "/etc/passwd"):
        with socket.create_connection(("127.0.0.1", int(console.url.rpartition(":")[2])), 10) as client:
            host = console.url.removeprefix("http://")
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
            answer = b"".join(iter(lambda client=client: client.recv(65536), b""))
        assert answer.startswith(b"HTTP/1.1 404 "), path


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", "evil.example:{port}", ""])
def test_a_page_elsewhere_cannot_read_by_its_own_name(run: Run, demo: Path, host: str) -> None:
    console = run(demo)
    port = console.url.rpartition(":")[2]
    answer = console.get("/recordings", Host=host.format(port=port))
    assert answer.status_code == 403
    assert "fair" not in answer.text
    assert console.get("/recordings", Host=f"localhost:{port}").status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "NONE"])
def test_recordings_are_only_read(run: Run, demo: Path, method: str) -> None:
    answer = run(demo).get("/", method)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "GET, HEAD")


def test_it_listens_on_this_machine_alone_at_the_port_that_is_asked_for(run: Run, demo: Path) -> None:
    port = free_port()
    assert run(demo, "--port", str(port)).url == f"http://127.0.0.1:{port}"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", port), 5)
    assert f"cannot serve at port {port}: " in refused(demo, "--port", str(port), "--no-browser")
    assert "cannot serve at port 70000: " in refused(demo, "--port", "70000", "--no-browser")


def test_a_folder_without_a_run_is_said_with_what_is_right(tmp_path: Path) -> None:
    assert "there is no such folder" in refused(tmp_path / "none")
    said = refused(tmp_path)
    assert f"{tmp_path}: neither it nor a folder up to 4 below it has a file events.jsonl; scripts/demo and" in said


def test_what_is_left_out_is_said(run: Run, demo: Path, tmp_path: Path) -> None:
    for number in range(MOST - 1):
        (tmp_path / "more" / f"run-{number}").mkdir(parents=True)
        (tmp_path / "more" / f"run-{number}" / "events.jsonl").write_text("wrong\n" + EVENT)
    console = run(tmp_path / "more", demo)
    assert len(console.first["recordings"]) == MOST
    assert console.get("/recordings/0/part/0").json() == json.loads(EVENT)
    _, said = console.end()
    assert f"{MOST} recorded runs are shown, which is the most; left out: arms/demo-1/jpas\n" in said
    assert f"{tmp_path / 'more' / 'run-0' / 'events.jsonl'}:1: this line is not as it was recorded" in said
    assert said.count("\n") == MOST


def test_the_browser_is_opened_where_it_is_not_left_out(demo: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    # It asks before it returns, as a browser in the terminal does.
    browser.write_text(
        f"#!{sys.executable}\nimport sys, urllib.request\n"
        f"open({str(opened)!r}, 'w').write(urllib.request.urlopen(sys.argv[1]).read().decode())\n"
    )
    browser.chmod(0o755)
    console = Console(demo, BROWSER=str(browser), no_proxy="*")
    try:
        for _ in range(200):
            if opened.exists() and opened.read_text():
                break
            with pytest.raises(subprocess.TimeoutExpired):
                console.process.wait(0.1)
        assert 'data-source="recorded"' in opened.read_text()
    finally:
        assert console.end()[0] == 130


def test_a_running_controllers_address_is_said_and_one_that_does_not_answer_too(tmp_path: Path) -> None:
    yard = Controller(tmp_path).start()
    command = [sys.executable, "-m", "controller.cli.main", "console", "--no-browser", "--url", yard.url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stdout) == (0, f"the console is at {yard.url}/\n"), "and no token is needed"
    finally:
        yard.stop()
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"no controller answers at {yard.url}" in done.stderr
