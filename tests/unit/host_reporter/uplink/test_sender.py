"""The sending thread against a small real HTTP server that fails in every way: nothing lost, nothing taken twice."""

from __future__ import annotations

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from controller.model import Progress
from controller.wire import HostReport, InterfaceTraffic, JobSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter.marking.enforcement import Marking
from host_reporter.marking.rules_text import Sent
from host_reporter.notices import Notices
from host_reporter.uplink.connection import Address
from host_reporter.uplink.interfaces import AGAIN_SECONDS, InterfaceNews
from host_reporter.uplink.sender import Sender

SPEC = JobSpec()


class Server(ThreadingHTTPServer):
    """A controller in little: jobs, batches by number, and statuses that it is told to answer with."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        self.jobs: dict[str, list[float]] = {}
        self.ended: list[str] = []
        self.sent: dict[str, float] = {}
        self.seen: set[tuple[str, int]] = set()
        self.repeats = 0
        self.marking = Marking()
        self.interfaces: list[InterfaceTraffic] = []
        self.is_older = False
        self.connections: list[socket.socket] = []
        self.put_status: Callable[[str], int] = lambda _job: 201
        self.post_status: list[int] = []
        super().__init__(("127.0.0.1", port), Handler)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def take(self, report: HostReport) -> dict[str, Any]:
        refused = []
        known = (report.session, report.seq) in self.seen
        self.seen.add((report.session, report.seq))
        self.repeats += known
        self.marking = Marking(report.marks, report.marks_acknowledgements, report.tunnel_ports)
        self.interfaces += report.interfaces or ()
        for part in () if known else report.jobs:
            if part.job not in self.jobs:
                refused.append({"job": part.job, "reason": "unknown job; register it first"})
                continue
            self.jobs[part.job] += [point.iteration for point in part.points]
            self.ended += [part.job] if part.ended else []
            if part.sent_bytes is not None:
                self.sent[part.job] = part.sent_bytes
        status = "duplicate" if known else "taken"
        return {"status": status, "refused": refused, "lease_seconds": 30.0, "period_seconds": 5.0}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        self.server.connections.append(self.connection)

    def do_PUT(self) -> None:
        job = self.path.rpartition("/")[2]
        JobSpec.model_validate_json(self._body())
        status = self.server.put_status(job)
        if status == 201:
            status = 200 if job in self.server.jobs else 201
            self.server.jobs.setdefault(job, [])
        self._answer(status, {"detail": f"answered with {status}"})

    def do_POST(self) -> None:
        report = HostReport.model_validate_json(self._body())
        status = self.server.post_status.pop(0) if self.server.post_status else 200
        if status == 0:
            # Taken, but the answer is lost on the way.
            self.server.take(report)
            self.close_connection = True
            return
        newer = [name for name in ("interfaces", "marks", "tunnel_ports") if getattr(report, name) not in (None, ())]
        if self.server.is_older and newer:
            self._answer(422, {"detail": f"{newer[0]}: there is no such field"})
            return
        self._answer(status, self.server.take(report) if status == 200 else {"detail": "no"})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _answer(self, status: int, document: dict[str, Any]) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """The tests look at what was taken."""


@pytest.fixture
def server() -> Iterator[Server]:
    created = Server()
    yield created
    created.close()


@pytest.fixture
def faults() -> list[Exception]:
    return []


@pytest.fixture
def sender(server: Server, faults: list[Exception]) -> Iterator[Sender]:
    created = Sender(Address(server.url), "h1", 0.2, Notices(logging.getLogger("test")), faults.append)
    created.start()
    yield created
    created.stop()
    assert faults == []


def _points(*iterations: float) -> list[Progress]:
    return [Progress(i, 1000.0 + i, 0.5) for i in iterations]


@pytest.mark.parametrize("statuses", [[500, 503, 429], [401, 403, 404], [0, 0], [302]])
def test_a_batch_that_was_not_taken_comes_again_and_counts_once(
    server: Server, sender: Sender, statuses: list[int]
) -> None:
    sender.declare("a", SPEC)
    wait_until(lambda: "a" in server.jobs)
    server.post_status[:] = statuses
    sender.add("a", _points(1, 2, 3))
    sender.end("a")
    wait_until(lambda: server.ended and not server.post_status)
    sender.stop()
    assert server.jobs["a"] == [1, 2, 3]
    assert server.ended == ["a"]


def test_what_is_marked_is_told(server: Server, sender: Sender) -> None:
    for marking in (Marking(True, True), Marking(False), Marking(True, False, (4789, 6081)), Marking(None, True)):
        sender.marks(marking)
        wait_until(lambda marking=marking: server.marking == marking)


def interface(sent: float, rate: float | None = None) -> InterfaceTraffic:
    return InterfaceTraffic(interface="eth0", kind="network", sent=sent, unseen_sent_rate=rate)


def test_what_interfaces_carry_goes_with_the_next_batch_and_at_once_where_it_says_something_else(
    server: Server, faults: list[Exception]
) -> None:
    sender = Sender(Address(server.url), "h1", 60.0, Notices(logging.getLogger("test")), faults.append)
    sender.start()
    try:
        wait_until(lambda: server.seen, what="the first batch")
        time.sleep(0.2)
        sender.note_interfaces((interface(1),))
        time.sleep(0.3)
        assert server.interfaces == []
        sender.note_interfaces((interface(2, 5e6),))
        wait_until(lambda: server.interfaces == [interface(2, 5e6)])
        sender.note_interfaces((interface(3),))
        wait_until(lambda: server.interfaces == [interface(2, 5e6), interface(3)], what="that it is over")
        sender.declare("a", SPEC)
        wait_until(lambda: "a" in server.jobs)
        sender.add("a", _points(1))
        wait_until(lambda: server.jobs["a"] == [1])
        assert len(server.interfaces) == 2, "what it has is not told again"
    finally:
        sender.stop()
    assert faults == []


@pytest.mark.parametrize("marks", [None, True])
def test_an_older_controller_loses_nothing_but_what_it_does_not_know(
    server: Server, sender: Sender, caplog: pytest.LogCaptureFixture, marks: bool | None
) -> None:
    server.is_older = True
    sender.marks(Marking(marks, True, (4789,)))
    sender.declare("a", SPEC)
    wait_until(lambda: "a" in server.jobs)
    sender.note_interfaces((interface(1, 5e6),))
    sender.add("a", _points(1, 2))
    wait_until(lambda: server.jobs["a"] == [1, 2])
    for sent in range(2, 5):
        sender.note_interfaces((interface(sent, 5e6 * 3**sent),))
        sender.add("a", _points(sent + 1))
    wait_until(lambda: server.jobs["a"] == [1, 2, 3, 4, 5])
    assert server.interfaces == []
    assert server.marking == Marking(None, True)
    said = [each for each in caplog.messages if "does not take what interfaces carry" in each]
    assert len(said) == 1, "it is tried again only after a while"


def test_a_controller_that_is_renewed_is_told_of_interfaces_after_a_while() -> None:
    news = InterfaceNews()
    news.note((interface(1),))
    news.refused(100.0)
    assert news.due(100.0 + AGAIN_SECONDS - 1) is None
    assert news.due(100.0 + AGAIN_SECONDS) == (interface(1),)
    news.taken((interface(1),))
    assert news.due(1000.0) is None


def test_the_controllers_period_is_known_from_its_answer(server: Server, sender: Sender) -> None:
    wait_until(lambda: sender.plan_period == 5.0)


def test_a_batch_that_is_wrong_is_dropped_and_the_next_goes_on(server: Server, sender: Sender) -> None:
    sender.declare("a", SPEC)
    wait_until(lambda: "a" in server.jobs)
    server.post_status[:] = [422]
    wait_until(lambda: not server.post_status)
    sender.add("a", _points(2))
    wait_until(lambda: server.jobs["a"] == [2])


def test_a_server_that_goes_away_and_returns_without_memory_is_told_all(server: Server, sender: Sender) -> None:
    sender.declare("a", SPEC)
    sender.add("a", _points(1))
    wait_until(lambda: server.jobs.get("a") == [1])
    port = server.server_port
    server.close()
    sender.add("a", _points(2))
    sender.declare("b", SPEC)
    sender.add("b", _points(7))
    sender.end("b")
    again = Server(port)
    try:
        wait_until(lambda: again.jobs.get("a") == [1, 2] and again.jobs.get("b") == [7])
        wait_until(lambda: again.ended == ["b"])
        sender.stop()
    finally:
        again.close()


def test_a_job_at_which_the_controller_fails_holds_up_no_other(server: Server, sender: Sender) -> None:
    server.put_status = lambda job: 500 if job == "poison" else 422 if job == "wrong" else 201
    for job in ("poison", "wrong", "good"):
        sender.declare(job, SPEC)
        sender.add(job, _points(1))
    wait_until(lambda: server.jobs.get("good") == [1])
    server.put_status = lambda _job: 201
    wait_until(lambda: server.jobs.get("poison") == [1])
    assert "wrong" not in server.jobs
    sender.declare("wrong", JobSpec(weight=2.0))
    wait_until(lambda: "wrong" in server.jobs)


def test_stopping_sends_what_waits_and_is_quick_without_a_controller(
    server: Server, sender: Sender, faults: list[Exception]
) -> None:
    sender.declare("a", SPEC)
    sender.add("a", _points(1, 2))
    sender.stop()
    assert server.jobs["a"] == [1, 2]
    notices = Notices(logging.getLogger("test"))
    lonely = Sender(Address("http://127.0.0.1:9"), "h1", 0.2, notices, faults.append, flush_seconds=3600.0)
    lonely.start()
    lonely.declare("a", SPEC)
    stopping = threading.Thread(target=lonely.stop, daemon=True)
    stopping.start()
    wait_until(lambda: not stopping.is_alive(), what="it gives up as soon as nobody answers")


def test_stopping_tells_the_bytes_that_were_counted_last(server: Server, sender: Sender) -> None:
    sender.declare("a", SPEC)
    sender.add("a", _points(1))
    wait_until(lambda: server.jobs.get("a") == [1])
    sender.count_sent({"a": Sent(77.0)})
    sender.stop()
    assert server.sent == {"a": 77.0}


def test_a_controller_that_has_no_time_at_the_end_is_asked_again(server: Server, sender: Sender) -> None:
    sender.declare("a", SPEC)
    sender.add("a", _points(1))
    wait_until(lambda: server.jobs.get("a") == [1])
    server.post_status[:] = [503, 503]
    sender.count_sent({"a": Sent(77.0)})
    sender.stop()
    assert server.sent == {"a": 77.0}


def test_a_job_at_which_the_controller_fails_keeps_no_other_from_being_told_at_the_end(
    server: Server, sender: Sender
) -> None:
    def put_status(job: str) -> int:
        if job != "poison":
            return 201
        time.sleep(0.2)  # until the agent stops
        return 500

    server.put_status = put_status
    sender.declare("good", SPEC)
    wait_until(lambda: "good" in server.jobs)
    sender.declare("poison", SPEC)
    sender.declare("late", SPEC)
    sender.add("late", _points(1))
    sender.add("good", _points(1, 2))
    sender.stop()
    assert (server.jobs["good"], server.jobs.get("late")) == ([1, 2], [1])


def test_a_fault_of_our_own_ends_the_thread_and_is_handed_on(server: Server, faults: list[Exception]) -> None:
    sender = Sender(Address(server.url), "h1", 0.2, Notices(logging.getLogger("test")), faults.append)
    sender.start()
    sender.declare("a", SPEC)
    wait_until(lambda: "a" in server.jobs)
    sender.add("a", _points(-1.0))
    wait_until(lambda: faults)
    assert "iteration" in str(faults[0])
    sender.stop()
