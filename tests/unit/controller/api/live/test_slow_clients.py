"""Clients that do not read, or not fast enough: they hold up nobody, cost no memory, and learn what they missed."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import spec
from tests.support.controller.api.event_reader import EventReader, stalled

STALLED = 200
RECORDS = 2500
"""So many changes of settings fill the buffers of a client that does not read, several times."""


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path, token=False, audit={"file": str(tmp_path / "audit.jsonl")}).start()
    yield controller
    controller.stop()


def memory_mb(yard: Controller) -> float:
    assert yard.process is not None
    return int(Path(f"/proc/{yard.process.pid}/status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def change(yard: Controller, count: int) -> None:
    """Make so many events, of about half a kilobyte each."""
    for number in range(count):
        yard.call("PATCH", "/v1/settings", {"period_seconds": 0.5 + (number % 2) / 8})


def test_200_clients_that_do_not_read_hold_up_nobody_and_are_disconnected(yard: Controller) -> None:
    clients: list[socket.socket] = []
    reader = EventReader(yard.port)
    try:
        clients = [stalled(yard.port) for _ in range(STALLED)]
        wait_until(lambda: f"trainyard_event_streams {STALLED + 1}.0" in yard.call("GET", "/metrics").text)
        before = memory_mb(yard)
        waits = []
        for _ in range(RECORDS // 10):
            change(yard, 10)
            began = time.monotonic()
            assert yard.call("GET", "/healthz").ok
            waits.append(time.monotonic() - began)
        assert sorted(waits)[len(waits) // 2] < 0.1
        yard.call("PUT", "/v1/jobs/last", spec(5000))
        reader.wait("job", lambda data: data["id"] == "last")
        assert not reader.of("gap")
        ids = [document["id"] for document in reader.documents]
        assert ids == list(range(ids[0], ids[0] + len(ids))), "who reads has missed nothing"
        assert memory_mb(yard) - before < 60
        wait_until(
            lambda: "trainyard_event_streams 1.0" in yard.call("GET", "/metrics").text,
            60.0,
            every=0.5,
            what="the end of the streams that nobody reads",
        )
    finally:
        reader.close()
        for client in clients:
            client.close()
