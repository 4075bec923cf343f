"""A steady load on a controller's API: one client sends reports of a host, another registers and deletes jobs."""

from __future__ import annotations

import http.client
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Any

JOBS = 10
"""So many of the jobs with changing ports are registered at a time."""
FIRST_PORT = 20_000
_PORTS = 20_000
_REPORT_PAUSE_SECONDS = 0.005
_JOB_PAUSE_SECONDS = 0.02
_ANSWER_SECONDS = 20.0


@dataclass
class Tally:
    """What one client has seen: when each answer came (``time.monotonic``), and what did not work."""

    answers: list[float] = field(default_factory=list)
    lost: int = 0
    """Requests without an answer, or with another than success."""
    broken: int = 0
    """Connections that ended without the controller's announcement."""


class Caller:
    """One connection that is kept; for one thread. ``token`` is the caller's, if any."""

    def __init__(self, port: int, token: str | None = None) -> None:
        self.tally = Tally()
        self._headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        self._http = http.client.HTTPConnection("127.0.0.1", port, timeout=_ANSWER_SECONDS)

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Message | None:
        """Ask, and count the outcome. Returns the answer's headers; None without an answer."""
        text = json.dumps(body) if body is not None else None
        own = {"Content-Type": "application/json"} if text is not None else {}
        try:
            self._http.request(method, path, text, self._headers | own | headers)
            answer = self._http.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            self.tally.lost += 1
            self.tally.broken += 1
            self._http.close()
            return None
        self.tally.answers.append(time.monotonic())
        self.tally.lost += not (200 <= answer.status < 300 or answer.status == HTTPStatus.NOT_MODIFIED)
        return answer.headers

    def close(self) -> None:
        """End the connection."""
        self._http.close()


@dataclass
class RestLoad:
    """``ports`` are those of the jobs that are registered, oldest first; they change until the load has ended."""

    reports: Tally
    jobs: Tally
    ports: list[int]


@contextmanager
def rest_load(port: int) -> Iterator[RestLoad]:
    """Load the API at ``port``, which asks for no token, until the block ends."""
    callers = (Caller(port), Caller(port))
    load = RestLoad(callers[0].tally, callers[1].tally, [])
    with calling((callers[0], _report), (callers[1], lambda caller, ended: _register(caller, load.ports, ended))):
        yield load


@contextmanager
def calling(*tasks: tuple[Caller, Callable[[Caller, threading.Event], None]]) -> Iterator[None]:
    """Until the block ends, let each caller do its task in a thread; a task ends soon after its event is set."""
    ended = threading.Event()
    threads = [threading.Thread(target=task, args=(caller, ended)) for caller, task in tasks]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
        for caller, _ in tasks:
            caller.close()


def spec(port: int) -> dict[str, Any]:
    """Returns the body that registers a job whose parameter server listens on ``port``."""
    return {"tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]}


def _report(caller: Caller, ended: threading.Event) -> None:
    caller.call("PUT", "/v1/jobs/reported", spec(FIRST_PORT - 1))
    for number in itertools.count(1):
        if ended.wait(_REPORT_PAUSE_SECONDS):
            return
        now = time.time()
        points = [{"iteration": number, "time": now, "metric": 1 / number}]
        body = {"session": "load", "seq": number, "sent_at": now, "jobs": [{"job": "reported", "points": points}]}
        caller.call("POST", "/v1/hosts/h1/reports", body)


def _register(caller: Caller, ports: list[int], ended: threading.Event) -> None:
    for number in itertools.count():
        if ended.wait(_JOB_PAUSE_SECONDS):
            return
        port = FIRST_PORT + number % _PORTS
        caller.call("PUT", f"/v1/jobs/job-{port}", spec(port))
        ports.append(port)
        if len(ports) > JOBS:
            caller.call("DELETE", f"/v1/jobs/job-{ports.pop(0)}")
