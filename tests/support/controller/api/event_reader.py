"""Clients of ``GET /v1/events``: one that reads, and one that does not."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable
from typing import Any

from controller.wire.event_stream import sent_events
from evaluation.bench.support.waiting import wait_until

Document = dict[str, Any]
EVENTS = "/v1/events"


class EventReader:
    """Reads a stream of a controller at ``port`` in a thread, until ``close`` or the stream's end."""

    def __init__(self, port: int, *, token: str | None = None, last: int | None = None) -> None:
        self.documents: list[Document] = []
        self.last = ""
        """The last id that came."""
        self.beats = 0
        """How often a sign of life came without an event."""
        self._connection = socket.create_connection(("127.0.0.1", port), 30)
        self._connection.sendall(request(token, last))
        self._file = self._connection.makefile("rb")
        self.head = b"".join(iter(self._file.readline, b"\r\n"))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for sent in sent_events(self._file):
                self.last = sent.last
                if sent.data is None:
                    self.beats += 1
                else:
                    self.documents.append(json.loads(sent.data))

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    def of(self, kind: str) -> list[Document]:
        """The events of a kind so far."""
        return [document for document in list(self.documents) if document["event"] == kind]

    def wait(self, kind: str, fits: Callable[[Any], bool] = lambda _data: True, seconds: float = 20.0) -> Document:
        """Returns the first event of a kind whose data fits."""

        def found() -> Document | None:
            return next((document for document in self.of(kind) if fits(document["data"])), None)

        document = wait_until(found, seconds, what=f"an event {kind}")
        assert document is not None
        return document

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._file.close()
        self._connection.close()


def stalled(port: int, token: str | None = None, path: str = EVENTS) -> socket.socket:
    """Returns a client that asks for events, or for what is at another path, and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(30)
    client.connect(("127.0.0.1", port))
    client.sendall(request(token, None, path))
    return client


def request(token: str | None, last: int | None, path: str = EVENTS) -> bytes:
    """Returns the head of a request for events, or for what is at another path."""
    lines = [f"GET {path} HTTP/1.1", "Host: localhost"]
    lines += [f"Authorization: Bearer {token}"] if token is not None else []
    lines += [f"Last-Event-ID: {last}"] if last is not None else []
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()
