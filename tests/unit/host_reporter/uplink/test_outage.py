"""How the agent tells a controller that goes away, forgets and refuses: in which order, how often, in which words."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from controller.model import Progress
from controller.wire import JobSpec
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from host_reporter.notices import Notices
from host_reporter.readers.points import MAX_PENDING
from host_reporter.uplink.backlog import BATCH_POINTS
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import ANSWER_SECONDS, Address
from host_reporter.uplink.sender import GAP_SECONDS, Sender


@pytest.fixture
def server() -> Iterator[ReporterServer]:
    made = ReporterServer()
    yield made
    made.stop()


@pytest.fixture
def faults() -> Iterator[list[Exception]]:
    found: list[Exception] = []
    yield found
    assert not found


def made_sender(url: str, faults: list[Exception], period_seconds: float = 0.2, **options: Any) -> Sender:
    notices = Notices(logging.getLogger("test"))
    return Sender(Address(url), "h1", period_seconds, notices, faults.append, **options)


@pytest.fixture
def sender(server: ReporterServer, faults: list[Exception]) -> Iterator[Sender]:
    made = made_sender(server.url, faults)
    made.start()
    yield made
    made.stop()


def told(*iterations: int) -> list[Progress]:
    return [Progress(float(i), 1000.0 + i, 0.5) for i in iterations]


@pytest.mark.usefixtures("sender")
def test_the_first_batch_says_that_the_host_is_there_and_empty_ones_follow(server: ReporterServer) -> None:
    wait_until(lambda: len(server.reports) >= 3)
    assert [report.seq for report in server.reports[:3]] == [1, 2, 3]
    assert {report.session for report in server.reports} == {server.reports[0].session}
    assert not any(report.jobs for report in server.reports)
    assert server.connections == 1


def test_nothing_is_lost_and_nothing_twice_over_an_absence(server: ReporterServer, sender: Sender) -> None:
    sender.declare("a", JobSpec())
    sender.add("a", told(1, 2))
    wait_until(lambda: server.points.get("a") == [1, 2])
    server.stop()
    for i in range(3, 40):
        sender.add("a", told(i))
        time.sleep(0.005)
    sender.declare("b", JobSpec(weight=2.0))
    sender.add("b", told(1))
    sender.end("b")
    server.start()
    wait_until(lambda: len(server.points["a"]) >= 39 and "b" in server.ended)
    assert server.points["a"] == list(range(1, 40))
    assert server.points["b"] == [1]
    assert server.ended == ["b"]


def test_a_batch_whose_answer_is_lost_is_sent_again_under_its_number(server: ReporterServer, sender: Sender) -> None:
    sender.declare("a", JobSpec())
    wait_until(lambda: "a" in server.jobs)
    server.lose_answers = 3
    sender.add("a", told(1))
    wait_until(lambda: server.lose_answers == 0)
    sender.add("a", told(2))
    wait_until(lambda: server.points.get("a", [])[-1:] == [2])
    assert server.points["a"] == [1, 2]
    numbers = [report.seq for report in server.reports]
    assert len(numbers) > len(set(numbers)), "no batch came twice: the test shows nothing"


def test_a_controller_that_forgot_a_quiet_job_is_told_again(server: ReporterServer, sender: Sender) -> None:
    sender.declare("a", JobSpec())
    sender.add("a", told(1, 2))
    wait_until(lambda: server.points.get("a") == [1, 2])
    server.forget()
    wait_until(lambda: server.points.get("a") == [1, 2], what="the sign of life shows it")


def test_an_end_is_told_before_the_next_run_begins(server: ReporterServer, sender: Sender) -> None:
    sender.declare("a", JobSpec())
    wait_until(lambda: "a" in server.jobs)
    server.stop()
    sender.end("a")
    sender.declare("a", JobSpec(weight=3.0))
    sender.add("a", told(1))
    server.start()
    wait_until(lambda: server.points.get("a") == [1])
    assert server.ended == ["a"]
    assert server.jobs["a"].weight == 3.0


def test_a_wrong_job_is_said_once_and_left_until_it_changes(
    server: ReporterServer, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    server.refuse["bad"] = 422
    sender.declare("bad", JobSpec())
    sender.add("bad", told(1))
    sender.declare("good", JobSpec())
    sender.add("good", told(1))
    wait_until(lambda: server.points.get("good") == [1])
    seen = len(server.reports)
    wait_until(lambda: len(server.reports) > seen + 2)
    assert server.puts.count("bad") == 1
    assert [r.message for r in caplog.records if "bad" in r.message] == [
        "job bad is refused until it changes: bad is refused"
    ]
    server.refuse.clear()
    sender.declare("bad", JobSpec(weight=2.0))
    wait_until(lambda: "bad" in server.jobs)


def test_a_conflict_is_tried_again_until_it_is_over(
    server: ReporterServer, sender: Sender, caplog: pytest.LogCaptureFixture
) -> None:
    server.refuse["late"] = 409
    sender.declare("late", JobSpec())
    sender.add("late", told(1))
    wait_until(lambda: server.puts.count("late") >= 2)
    server.refuse.clear()
    wait_until(lambda: server.points.get("late") == [1])
    assert sum("refused for now" in r.message for r in caplog.records) == 1


@pytest.mark.usefixtures("sender")
def test_trouble_is_said_once_and_its_end_too(server: ReporterServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    wait_until(lambda: server.reports)
    server.status = 503
    tries = len(server.tokens)
    wait_until(lambda: len(server.tokens) >= tries + 3)
    server.status = None
    wait_until(lambda: any("answers" in record.message for record in caplog.records))
    assert sum("as the test wants; reports are kept" in record.message for record in caplog.records) == 1
    assert sum("answers" in record.message for record in caplog.records) == 1


def test_progress_is_told_once_a_period_and_what_is_waited_for_at_once(
    server: ReporterServer, sender: Sender, faults: list[Exception]
) -> None:
    server.period_seconds = 3600.0
    sender.stop()
    sender = made_sender(server.url, faults, 3600.0)
    sender.start()
    for job in ("a", "b"):
        sender.declare(job, JobSpec())
    wait_until(lambda: {"a", "b"} <= server.jobs.keys())
    server.urgent = {"a": {"metric": 0.9, "direction": "max"}}
    # The first batch of the session has been answered: the next progress is a period away.
    sender.add("a", told(1))
    sender.end("b")
    wait_until(lambda: server.ended == ["b"])
    assert server.points["a"] == [1]
    sender.add("a", told(2))
    time.sleep(0.3)
    assert server.points["a"] == [1]
    sender.add("a", [Progress(3.0, 1003.0, 0.95)])
    wait_until(lambda: server.points["a"] == [1, 2, 3])
    sender.add("a", told(4))
    sender.stop()
    assert server.points["a"] == [1, 2, 3, 4]


def test_a_long_backlog_does_not_wait_for_periods(server: ReporterServer, faults: list[Exception]) -> None:
    jobs = [f"j{number}" for number in range(4 * BATCH_POINTS // MAX_PENDING)]
    server.period_seconds = 3600.0
    sender = made_sender(server.url, faults, 3600.0)
    for job in jobs:
        sender.declare(job, JobSpec())
        sender.add(job, told(*range(MAX_PENDING)))
    sender.start()
    wait_until(lambda: sum(map(len, server.points.values())) >= 3 * BATCH_POINTS)
    sender.stop()
    assert server.points == {job: list(range(MAX_PENDING)) for job in jobs}


def test_a_storm_of_lines_is_few_posts(server: ReporterServer, sender: Sender) -> None:
    sender.declare("a", JobSpec())
    wait_until(lambda: "a" in server.jobs)
    before, began = len(server.reports), time.monotonic()
    for i in range(300):
        sender.add("a", told(i))
        time.sleep(0.001)
    wait_until(lambda: len(server.points.get("a", [])) == 300)
    took = time.monotonic() - began
    assert len(server.reports) - before <= took / GAP_SECONDS + 2
    assert server.points["a"] == list(range(300))


def test_a_slow_controller_is_told_of_new_jobs_and_not_only_that_the_host_lives(
    server: ReporterServer, faults: list[Exception]
) -> None:
    server.delay = 0.3
    sender = made_sender(server.url, faults, 0.1)
    sender.start()
    wait_until(lambda: server.reports)
    sender.declare("a", JobSpec())
    wait_until(lambda: "a" in server.jobs, 3.0)
    sender.declare("b", JobSpec())
    sender.stop()
    assert "b" in server.jobs, "nor at the end"


def test_what_is_pending_is_sent_at_the_end(server: ReporterServer, faults: list[Exception]) -> None:
    sender = made_sender(server.url, faults, 60.0)
    sender.start()
    sender.declare("a", JobSpec())
    sender.add("a", told(1))
    sender.stop()
    assert server.points == {"a": [1]}
    assert server.ended == []


def test_the_end_does_not_wait_for_the_next_try(
    server: ReporterServer,
    faults: list[Exception],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Patient(Backoff):
        def next_seconds(self) -> float:
            return 3600.0

    server.status = 503
    sender = made_sender(server.url, faults, backoff=Patient())
    sender.start()
    # Until the refusal was dealt with, not only sent: an end that comes between the two gives up with it.
    wait_until(lambda: any("reports are kept" in record.message for record in caplog.records))
    sender.declare("a", JobSpec())
    server.status = None
    sender.stop()
    assert "a" in server.jobs


@pytest.mark.parametrize("kind", ["gone", "silent"])
def test_the_end_is_bounded_whatever_the_controller_does(kind: str, faults: list[Exception]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if kind == "gone":
            silent.close()
        sender = made_sender(f"http://127.0.0.1:{port}", faults, flush_seconds=0.2)
        sender.start()
        sender.declare("a", JobSpec())
        began = time.monotonic()
        sender.stop()
        assert time.monotonic() - began < ANSWER_SECONDS, "it waits for no answer"
