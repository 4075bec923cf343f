"""Clients that write to a controller while it is stopped, and what the controller must know afterwards.

Each client has jobs of its own, so that the order of what it was answered is known. What was answered with success must
be there after a restart; a request without an answer may have been carried out or not.
"""

from __future__ import annotations

import io
import itertools
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from evaluation.bench.support.api_client import Controller

CLIENTS = 8
JOBS = 12
"""Jobs of a client; and the requests that a client with a kept connection sends before it reads an answer."""
ANSWER_SECONDS = 15.0


@dataclass
class Job:
    """What a client knows of one of its jobs: ``weights`` are those that it may have, None: there is no such job.

    ``iteration``: the last one that was told and answered in the job's present run.
    """

    name: str
    port: int
    weights: set[float | None] = field(default_factory=lambda: {None})
    iteration: float = 0.0


class Request(NamedTuple):
    """A request, and who is told the status of its answer: None where there is none."""

    method: str
    path: str
    body: dict[str, Any] | None
    answered: Callable[[int | None], None]

    @property
    def text(self) -> bytes:
        """The request as it is sent."""
        body = json.dumps(self.body).encode() if self.body is not None else b""
        head = f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        media_type = "Content-Type: application/json\r\n" if self.body is not None else ""
        return f"{head}{media_type}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Writer:
    """One client in a thread of its own. ``is_kept``: over one connection, as long as the controller keeps that."""

    def __init__(self, controller: Controller, number: int, *, is_kept: bool) -> None:
        self.jobs = [Job(f"w{number}-{i}", 20_000 + number * JOBS + i) for i in range(JOBS)]
        self.periods = {float(controller.settings["period_seconds"])} if number == 0 else set()
        """The periods that may be set, where this is the client that sets them."""
        self.statuses: Counter[int] = Counter()
        self._port = controller.port
        self._is_kept = is_kept
        self._random = random.Random(number)
        self._sequence = itertools.count(1)
        self._session = f"writer-{number}"
        self._connection: tuple[socket.socket, io.BufferedReader] | None = None
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)

    def start(self) -> None:
        """Begin to write; it ends when nobody takes connections any more, or by ``stop``."""
        self._is_over.clear()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End, and wait for the end."""
        self._is_over.set()
        self._thread.join(2 * ANSWER_SECONDS)
        assert not self._thread.is_alive()

    def _write(self) -> None:
        while not self._is_over.is_set():
            requests = [self._request(job) for job in self.jobs]
            try:
                if self._is_kept:
                    self._ask(requests)
                else:
                    for request in requests:
                        self._ask([request])
            except (ConnectionRefusedError, ConnectionResetError):  # the latter, where it ends amid the handshake
                return

    def _request(self, job: Job) -> Request:
        what = self._random.random()
        if what < 0.3 or None in job.weights:
            return self._put(job)
        if what < 0.5:
            return self._delete(job)
        if what < 0.55 and self.periods:
            return self._patch()
        return self._report(job)

    def _put(self, job: Job) -> Request:
        weight = self._random.randrange(1, 10**6) / 1000
        tasks = [{"role": "ps", "host": "h1", "port": job.port}, {"role": "worker", "host": "h2"}]

        def answered(status: int | None) -> None:
            if status in (200, 201):
                job.weights = {weight}
            elif status is None:
                job.weights |= {weight}
            if status == 201:
                job.iteration = 0.0

        return Request("PUT", f"/v1/jobs/{job.name}", {"tasks": tasks, "weight": weight}, answered)

    def _delete(self, job: Job) -> Request:
        def answered(status: int | None) -> None:
            if status in (204, 404):
                job.weights, job.iteration = {None}, 0.0
            elif status is None:
                job.weights |= {None}

        return Request("DELETE", f"/v1/jobs/{job.name}", None, answered)

    def _patch(self) -> Request:
        period = self._random.randrange(300, 900) / 1000

        def answered(status: int | None) -> None:
            if status == 200:
                self.periods = {period}
            elif status is None:
                self.periods |= {period}

        return Request("PATCH", "/v1/settings", {"period_seconds": period}, answered)

    def _report(self, job: Job) -> Request:
        iteration = job.iteration + 1
        point = {"iteration": iteration, "time": time.time(), "metric": 0.5}
        body = {"session": self._session, "seq": next(self._sequence), "sent_at": time.time()}

        def answered(status: int | None) -> None:
            if status == 200:
                job.iteration = iteration

        return Request(
            "POST", "/v1/hosts/h1/reports", body | {"jobs": [{"job": job.name, "points": [point]}]}, answered
        )

    def _ask(self, requests: Sequence[Request]) -> None:
        """Send all of them, then read the answers. Raises ConnectionRefusedError where nobody listens, and
        ConnectionResetError where that ends amid the handshake, before anything is sent.
        """
        if self._connection is None:
            made = socket.create_connection(("127.0.0.1", self._port), ANSWER_SECONDS)
            self._connection = made, made.makefile("rb")
        connection, answers = self._connection
        left = list(requests)
        is_kept = self._is_kept
        try:
            connection.sendall(b"".join(request.text for request in requests))
            while left and (answer := _read(answers)) is not None:
                status, is_kept_there = answer
                self.statuses[status] += 1
                left.pop(0).answered(status)
                is_kept = is_kept and is_kept_there
        except OSError:
            is_kept = False
        for request in left:
            request.answered(None)
        if left or not is_kept:
            answers.close()
            connection.close()
            self._connection = None


def _read(answers: io.BufferedReader) -> tuple[int, bool] | None:
    """An answer's status, and whether the connection is kept after it; None: there is none. Raises OSError."""
    line = answers.readline()
    if not line.endswith(b"\n"):
        return None
    headers = {}
    while (header := answers.readline().strip()) != b"":
        name, _, value = header.partition(b":")
        headers[name.lower()] = value.strip()
    size = int(headers.get(b"content-length", 0))
    if len(answers.read(size)) < size:
        return None
    return int(line.split()[1]), headers.get(b"connection", b"").lower() != b"close"


def writers(controller: Controller) -> list[Writer]:
    """CLIENTS clients, every second one with a connection that it keeps."""
    return [Writer(controller, number, is_kept=number % 2 == 0) for number in range(CLIENTS)]


def lost(controller: Controller, clients: Sequence[Writer]) -> list[str]:
    """What ``clients`` were answered and ``controller``, which was started anew, does not know; a sentence each.

    What may be one thing or another is what the controller says from here on.
    """
    known = {job["id"]: job for job in controller.call("GET", "/v1/jobs").json()["jobs"]}
    found = []
    for job in (job for client in clients for job in client.jobs):
        state = known.get(job.name)
        weight = state["spec"]["weight"] if state is not None else None
        done = state["iterations_done"] if state is not None else 0.0
        if weight not in job.weights:
            found.append(f"job {job.name} has weight {weight} and not {job.weights}")
        elif job.weights == {weight} and done < job.iteration:
            found.append(f"job {job.name} has {done} iterations and not {job.iteration}")
        job.weights, job.iteration = {weight}, done
    period = controller.call("GET", "/v1/settings").json()["period_seconds"]
    periods = set[float]().union(*(client.periods for client in clients))
    if periods and period not in periods:
        found.append(f"the period is {period} s and not {periods}")
    for client in clients:
        client.periods &= {period}
    return found
