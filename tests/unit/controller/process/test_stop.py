"""The controller's stop, by real signals to a real process: what was answered is kept, and nothing holds it up."""

from __future__ import annotations

import contextlib
import json
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.process.stop_load import lost, writers
from tests.support.loopback import has_been_read
from tests.support.paths import SUPPORT

APPS = SUPPORT / "controller" / "process"


@contextlib.contextmanager
def running(folder: Path, *apps: str, **settings: Any) -> Iterator[Controller]:
    controller = Controller(folder, token=False, apps=[str(APPS / f"{app}.py") for app in apps], **settings)
    try:
        yield controller.start()
    finally:
        controller.stop(kill=True)


def spec(port: int) -> dict[str, Any]:
    """The body that registers a job whose parameter server listens on ``port``."""
    tasks = [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]
    return {"tasks": tasks, "demand": [{"src": "h2", "dst": "h1", "bytes": 1e6}], "iterations": 50}


class Peer:
    """One connection, of which a test decides what is sent when."""

    def __init__(self, controller: Controller) -> None:
        self._socket = socket.create_connection(("127.0.0.1", controller.port), 30)
        self._answers = self._socket.makefile("rb")

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()

    def send(self, method: str, path: str, body: Any = None, *, most: int | None = None, **headers: str) -> bytes:
        """Begin a request, of whose body ``most`` bytes are sent; the rest of the body."""
        text = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Content-Length: {len(text)}"]
        lines += ["Content-Type: application/json"] if body is not None else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self._socket.sendall("\r\n".join([*lines, "", ""]).encode() + text[:most])
        return text[most:] if most is not None else b""

    def has_been_read(self) -> bool:
        """Returns whether the controller has read what was sent."""
        return has_been_read(self._socket)

    def send_rest(self, rest: bytes) -> None:
        self._socket.sendall(rest)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        """Status, headers by their names in small letters, and body."""
        status = int(self._answers.readline().split()[1])
        headers = {}
        while (line := self._answers.readline().decode().strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return status, headers, self._answers.read(int(headers.get("content-length", 0)))


def refused(controller: Controller) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", controller.port)) != 0


def test_whatever_was_answered_is_there_after_any_end(tmp_path: Path) -> None:
    """Beside an app that takes a while to end: as long as the process lives, its green threads can answer."""
    with running(tmp_path, "slow_end", journal=str(tmp_path / "j.db")) as controller:
        clients = writers(controller)
        for number, status in ((signal.SIGTERM, 0), (signal.SIGINT, 0), (signal.SIGKILL, -9)):
            for client in clients:
                client.statuses.clear()
                client.start()
            wait_until(lambda: sum(sum(client.statuses.values()) for client in clients) > 200)
            assert controller.end(number) == status, controller.log()
            for client in clients:
                client.stop()
            controller.start()
            assert lost(controller, clients) == []
        assert "Traceback" not in controller.log()


def test_a_stop_answers_who_is_inside_and_refuses_all_others(tmp_path: Path) -> None:
    with (
        running(tmp_path, journal=str(tmp_path / "j.db")) as controller,
        Peer(controller) as idle,
        Peer(controller) as slow,
        Peer(controller) as waiting,
    ):
        wait_until(lambda: controller.call("GET", "/v1/hosts/h1/plan").ok)
        idle.send("GET", "/v1/hosts/h1/plan")
        tag = idle.answer()[1]["etag"]
        waiting.send("GET", "/v1/hosts/h1/plan?wait=60", If_None_Match=tag)
        rest = slow.send("PUT", "/v1/jobs/late", spec(5000), most=20)
        wait_until(lambda: waiting.has_been_read() and slow.has_been_read())
        assert controller.process is not None
        controller.process.send_signal(signal.SIGTERM)
        status, headers, _ = waiting.answer()
        assert (status, headers["connection"]) == (304, "close")
        wait_until(lambda: refused(controller))
        idle.send("PUT", "/v1/jobs/refused", spec(5001))
        status, headers, body = idle.answer()
        assert (status, headers["connection"], headers["content-type"]) == (503, "close", "application/problem+json")
        assert "the controller is stopping" in json.loads(body)["detail"]
        slow.send_rest(rest)
        status, headers, _ = slow.answer()
        assert (status, headers["connection"]) == (201, "close")
        assert controller.process.wait(20) == 0
        controller.process = None
        controller.start()
        assert [job["id"] for job in controller.call("GET", "/v1/jobs").json()["jobs"]] == ["late"]


def test_a_peer_that_hangs_holds_up_no_stop_and_is_refused(tmp_path: Path) -> None:
    with running(tmp_path) as controller, Peer(controller) as hanging:
        hanging.send("PUT", "/v1/jobs/never", spec(5000), most=20)
        wait_until(hanging.has_been_read)
        assert controller.end(signal.SIGTERM) == 0
        assert hanging.answer()[0] == 503
        assert "requests have taken over 2.5 s and are refused" in controller.log()
        assert "Traceback" not in controller.log()


def test_a_second_signal_ends_a_stop_at_once(tmp_path: Path) -> None:
    with running(tmp_path) as controller, Peer(controller) as hanging:
        hanging.send("PUT", "/v1/jobs/never", spec(5001), most=20)
        wait_until(hanging.has_been_read)
        assert controller.process is not None
        controller.process.send_signal(signal.SIGTERM)
        wait_until(lambda: refused(controller))
        assert controller.end(signal.SIGINT) == 1
        assert "a second signal has ended the stop" in controller.log()


def test_what_another_thread_is_at_holds_up_no_stop(tmp_path: Path) -> None:
    """A plan that is being made, for one."""
    with running(tmp_path, "busy_thread") as controller:
        assert controller.end(signal.SIGINT) == 0
        assert "Traceback" not in controller.log()


def test_a_stop_that_cannot_write_what_it_knows_says_so(tmp_path: Path) -> None:
    with running(tmp_path, journal=str(tmp_path / "none" / "j.db")) as controller:
        assert controller.call("PUT", "/v1/jobs/a", spec(5000)).ok
        assert controller.end(signal.SIGTERM) == 1
        assert "what is missing in it is lost" in controller.log()
        assert "Traceback" not in controller.log()
