"""Lets another process parse large bodies, one after the other, so that no request delays all others.

A body of 65,536 demands takes 0.4 s to parse. A thread would not help, because the library that parses holds the
interpreter's lock.
"""

from __future__ import annotations

import logging
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

import eventlet
import eventlet.semaphore
from eventlet.green import socket

from controller.api.bodies.work import KINDS, receive
from controller.api.bodies.worker import LENGTH
from controller.api.http import HttpError
from controller.steps import in_steps

LOG = logging.getLogger("trainyard.api")
IN_PLACE_BYTES = 8 * 1024
"""Limits the size of a body that is parsed in this process, which takes 10 ms at most."""
MAX_WAITING = 32
MAX_WAITING_OF_CLIENT = 8
"""Limit the large bodies that wait at a time, of all clients and of one client. Each is held in memory."""
ANSWER_SECONDS = 30.0
"""Limits how long the other process may take for one body."""
TRIES = 2


class WorkerGoneError(Exception):
    """The other process has ended or does not answer."""


class Workers:
    """Parses bodies. If its process has not been started or has ended, the next large body starts one."""

    def __init__(
        self,
        max_waiting: int = MAX_WAITING,
        max_waiting_of_client: int = MAX_WAITING_OF_CLIENT,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        self._max_waiting = max_waiting
        self._max_waiting_of_client = max_waiting_of_client
        self._answer_seconds = answer_seconds
        self._turn = eventlet.semaphore.Semaphore()
        self._waiting: Counter[str] = Counter()
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Any = None

    @property
    def pid(self) -> int | None:
        """The process id of the other process, or None if there is none."""
        return self._process.pid if self._process is not None else None

    def make(self, kind: str, raw: bytes, client: str) -> Any:
        """Returns a body of ``client``, parsed as ``work.KINDS`` says. Raises HttpError, with 503 if too many wait."""
        if len(raw) <= IN_PLACE_BYTES:
            return KINDS[kind].here(raw)
        if self._waiting.total() >= self._max_waiting or self._waiting[client] >= self._max_waiting_of_client:
            problem = "too many large bodies wait to be parsed; send this one again in a moment"
            raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, problem, headers={"Retry-After": "1"})
        self._waiting[client] += 1
        try:
            with self._turn:
                frames = self._ask(kind, raw)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
        return in_steps(receive(kind, frames))

    def start(self) -> None:
        """Start the process, so that the first large body need not wait for it."""
        if self._process is not None and self._process.poll() is None:
            return
        self.stop()
        own_end, worker_end = socket.socketpair()
        command = [sys.executable, "-m", "controller.api.bodies.worker", str(worker_end.fileno())]
        try:
            # In a session of its own, so that Ctrl-C does not reach it, even while it is starting.
            self._process = subprocess.Popen(
                command, pass_fds=[worker_end.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
            )
        finally:
            worker_end.close()
        self._connection = own_end

    def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        if process is not None:
            process.kill()
            process.wait()

    def _ask(self, kind: str, raw: bytes) -> Iterator[bytes]:
        for _ in range(TRIES):
            try:
                self.start()
                return iter(self._exchange(kind, raw))
            except (WorkerGoneError, OSError) as error:
                LOG.error("the process that parses large bodies is replaced: %s", error)
                self.stop()
            except BaseException:  # the request was cancelled: the rest of its answer must not go to the next request
                self.stop()
                raise
        problem = "the process that parses large bodies has failed on this one; the controller's log says how"
        raise HttpError(HTTPStatus.INTERNAL_SERVER_ERROR, problem)

    def _exchange(self, kind: str, raw: bytes) -> list[bytes]:
        frames: list[bytes] = []
        late = WorkerGoneError(f"it has not answered within {self._answer_seconds:g} s")
        with eventlet.Timeout(self._answer_seconds, late):
            self._connection.sendall(f"{kind} {len(raw)}\n".encode() + raw)
            while length := LENGTH.unpack(self._read(LENGTH.size))[0]:
                frames.append(self._read(length - 1))
        return frames

    def _read(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            part = self._connection.recv(min(size, 1 << 18))
            if not part:
                raise WorkerGoneError("it has ended")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
