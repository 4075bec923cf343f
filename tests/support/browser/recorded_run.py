"""A run of a real controller, recorded as the lab records an arm."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from controller.wire.event_stream import Sent, sent_events
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from topologies.errors import LabError
from topologies.lab.controller_process import ControllerSilentError
from topologies.lab.recording.events import EventRecorder
from topologies.lab.recording.facts import FactsRecorder
from topologies.lab.recording.reached import add_reached

JOBS = ("small", "large")
STEPS = 4
ITERATIONS = 2 * STEPS
"""Of each job, so that at the end of the recording something is left for which the other one waits."""
STEP_SECONDS = 1.1
"""Progress makes at most one event of a job in a second."""


def record(folder: Path, policy: str, title: str) -> None:
    """Record some seconds of a policy: ``small`` and ``large`` meet at two ports, and report ``STEPS`` times."""
    folder.mkdir(parents=True)
    settings = folder.parent / f"{folder.name}-controller"
    settings.mkdir()
    yard = Controller(settings, token=False, policy=policy).start()
    facts = FactsRecorder(lambda path: _ask(yard, path), folder, title)
    events = EventRecorder(lambda last: _follow(yard, last), folder, facts.note)
    facts.start()
    events.start()
    zero = time.time()
    for number, job in enumerate(JOBS):
        demand = [{"src": "h2", "dst": "h1", "bytes": 1e6 + 4e6 * number}]
        yard.call("PUT", f"/v1/jobs/{job}", spec(5000 + number, demand=demand, iterations=ITERATIONS))
    for step in range(1, STEPS + 1):
        points = [{"iteration": step, "time": time.time(), "metric": step / (step + 1)}]
        yard.call("POST", "/v1/hosts/h1/reports", batch(*({"job": job, "points": points} for job in JOBS)))
        time.sleep(STEP_SECONDS)
    part = folder / "explanations.jsonl.part"
    wait_until(lambda: all(f'"job": "{job}"' in part.read_text() for job in JOBS), what="explanations")
    facts.ask_last(zero)
    yard.stop()
    events.stop(zero)
    facts.stop(zero)
    add_reached(
        folder,
        {job: {"arrival": 0.1, "t90": 2.0 + number, "t95": None, "end": None} for number, job in enumerate(JOBS)},
    )


def _ask(yard: Controller, path: str) -> Any:
    answer = yard.session.get(yard.url + path, timeout=10)
    if not answer.ok:
        raise LabError(answer.text)
    return answer.json()


def _follow(yard: Controller, last: str) -> Iterator[Sent]:
    connection = http.client.HTTPConnection("127.0.0.1", yard.port, timeout=30)
    try:
        connection.request("GET", "/v1/events", headers={"Last-Event-ID": last})
        yield from sent_events(connection.getresponse())
    except (OSError, http.client.HTTPException) as error:
        raise ControllerSilentError(str(error)) from error
    finally:
        connection.close()
