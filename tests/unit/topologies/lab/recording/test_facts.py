"""What is recorded beside events, from a real controller, and how little it asks."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from controller.wire import Explanation, HistoryView, JobState, Network, Settings, Status
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.event_reader import EventReader
from topologies.errors import LabError
from topologies.lab.controller_process import ControllerSilentError
from topologies.lab.recording.facts import MOST_EXPLAINED, FactsRecorder


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Controller]:
    controller = Controller(tmp_path, token=False).start()
    yield controller
    controller.stop()


def asking(yard: Controller) -> Any:
    def ask(path: str) -> Any:
        answer = yard.session.get(yard.url + path, timeout=10)
        if not answer.ok:
            raise LabError(answer.text)
        return answer.json()

    return ask


def lines(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "explanations.jsonl").read_text().splitlines()]


def test_a_replay_gets_jobs_as_they_ran_and_what_the_controller_knew_last(yard: Controller, tmp_path: Path) -> None:
    folder = tmp_path / "arm"
    folder.mkdir()
    recorder = FactsRecorder(asking(yard), folder, "fair sharing")
    reader = EventReader(yard.port)
    recorder.start()
    zero = time.time()
    for job, port in (("a", 5000), ("b", 5001)):
        yard.call("PUT", f"/v1/jobs/{job}", spec(port))
    yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "points": [{"iteration": 7, "time": zero}]}))
    recorder.note(json.dumps(reader.wait("plan", lambda data: len(data["classes"]) == 2)))
    part = folder / "explanations.jsonl.part"
    wait_until(lambda: part.read_text().count("\n") == 2, what="two explanations")
    wait_until(lambda: "a" in recorder._jobs and recorder._jobs["a"]["iterations_done"] == 7, what="the job's state")
    yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "ended": True}))
    recorder.ask_last(zero)
    reader.close()
    yard.stop()
    recorder.stop(zero)
    told = lines(folder)
    assert [line["job"] for line in told] == ["a", "b"]
    assert all(0 <= line["time"] < 30 for line in told)
    explained = [Explanation.model_validate(line["explanation"]) for line in told]
    assert [each.jobs_before for each in explained] == [(), ("a",)]
    assert explained[1].ports[0].before[0].job == "a"
    facts = json.loads((folder / "facts.json").read_text())
    assert (facts["title"], facts["started_at"]) == ("fair sharing", zero)
    assert 0 < facts["seconds"] < 60
    states = {job: JobState.model_validate_json(json.dumps(state)) for job, state in facts["jobs"].items()}
    assert {job: state.state for job, state in states.items()} == {"a": "running", "b": "waiting"}, "as they ran"
    history = HistoryView.model_validate(facts["history"])
    assert -5 <= history.since <= 0, "from the start of the experiment, to whole steps"
    assert history.steps < 20
    assert [host.name for host in Network.model_validate(facts["network"]).hosts] == ["h1", "h2", "h3"]
    assert Status.model_validate(facts["status"]).policy == "fifo"
    assert Settings.model_validate(facts["settings"]).policy == "fifo"
    assert sorted(path.name for path in folder.iterdir()) == ["explanations.jsonl", "facts.json"]


def test_where_no_controller_answers_the_files_are_shorter(tmp_path: Path) -> None:
    def silent(path: str) -> Any:
        raise ControllerSilentError(f"{path}: it is gone")

    recorder = FactsRecorder(silent, tmp_path, "fair")
    recorder.start()
    recorder.note('{"event": "plan", "data": {"order": [["a"]]}}')
    recorder.ask_last(time.time())
    recorder.stop(time.time() - 5.0)
    facts = json.loads((tmp_path / "facts.json").read_text())
    assert set(facts) == {"title", "started_at", "seconds", "jobs"}
    assert (facts["jobs"], round(facts["seconds"])) == ({}, 5)
    assert lines(tmp_path) == []


class Slow:
    """Answers as a controller does, after a while. ``asked``: the paths. ``spent``: the seconds of all answers."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self.asked: list[str] = []
        self.spent = 0.0

    def __call__(self, path: str) -> Any:
        with self._lock:
            self.asked.append(path)
            began = time.monotonic()
            time.sleep(self._seconds)
            self.spent += time.monotonic() - began
        if path == "/v1/jobs":
            return {"jobs": []}
        if path.endswith("/explain") and "gone" in path:
            raise LabError("404")
        return {"job": unquote(path), "since": 0.0}


def test_a_controller_is_asked_little_however_many_plans_come(tmp_path: Path) -> None:
    controller = Slow(0.002)
    recorder = FactsRecorder(controller, tmp_path, "jpas")
    recorder.start()
    began = time.monotonic()
    plan = json.dumps({"event": "plan", "data": {"order": [["gone"], *([f"j{i}"] for i in range(100))]}})
    while time.monotonic() < began + 6.0:
        recorder.note(plan)
        recorder.note('{"event": "job", "data": {}}')
        time.sleep(0.05)
    seconds, spent = time.monotonic() - began, controller.spent
    explained = [path for path in controller.asked if path.endswith("/explain")]
    recorder.ask_last(time.time())
    recorder.stop(time.time())
    assert len(set(explained)) == MOST_EXPLAINED
    rounds = len(explained) / MOST_EXPLAINED
    assert 1 <= rounds <= 1 + seconds, "at most one a second"
    assert (spent - MOST_EXPLAINED * 0.01) / seconds < 0.02, "but for the first answers"
    assert controller.asked.count("/v1/jobs") <= 3
    assert [line["job"] for line in lines(tmp_path)] == [f"j{i}" for i in range(31)], "what is as before is not written"
