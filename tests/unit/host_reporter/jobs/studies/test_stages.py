"""Stages: the words of progress and of job files that tell them, and what the controller lets a host's token do."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.model import Progress
from controller.wire import JobSpec
from evaluation.bench.support.api_client import HOST, Controller
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.job_file import JobFileError, read_job_file
from host_reporter.jobs.studies.stages import StagedSpec, in_stage
from host_reporter.notices import Notices
from host_reporter.readers.parse import Staged, json_parser
from host_reporter.uplink.connection import Address
from host_reporter.uplink.sender import Sender
from tests.support.controller.registry.registry_world import job_spec


@pytest.mark.parametrize(
    ("line", "event"),
    [
        ('{"stage": "b0.r1", "until": 9}', Staged("b0.r1", 9.0)),
        ('{"stage": "r1"}', Staged("r1")),
        ('{"stage": null, "until": 9}', Staged(None)),
        ('{"stage": "r1", "until": -1}', Staged("r1")),
        ('{"stage": "r1", "until": 1e999}', Staged("r1")),
        ('{"stage": "r1", "until": "many"}', Staged("r1")),
        ('{"stage": "r1", "rungs_left": 2}', Staged("r1", None, 2)),
        ('{"stage": "r1", "until": 9, "rungs_left": 0.0}', Staged("r1", 9.0, 0)),
        ('{"stage": "r1", "rungs_left": 1.5}', Staged("r1")),
        ('{"stage": "r1", "rungs_left": -1}', Staged("r1")),
        ('{"stage": "r1", "rungs_left": 101}', Staged("r1")),
        ('{"stage": "r1", "rungs_left": "two"}', Staged("r1")),
        ('{"stage": null, "rungs_left": 2}', Staged(None)),
        ('{"stage": "a/b"}', None),
        ('{"stage": ""}', None),
        ('{"stage": 5}', None),
        ('{"stage": ["r1"]}', None),
        ('{"stage": "r1\\u202e"}', None),
    ],
)
def test_stage_records(line: str, event: Staged | None) -> None:
    assert json_parser(line) == event


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"id": "a", "trials": {}, "progress": {"jsonl": "x"}}, "neither progress nor study"),
        ({"id": "a", "trials": {}, "study": "s"}, "neither progress nor study"),
        ({"id": "a", "trials": {}, "spec": {"stage": "s"}}, "leave spec.stage out"),
        ({"id": "a", "study": "s", "spec": {"stage": "s"}}, "leave spec.stage out"),
        ({"id": "a", "trials": {"most": 0}}, "trials.most: "),
        ({"id": "a", "trials": {"folder": ""}}, "trials.folder: "),
        ({"id": "a", "progress": {"jsonl": "x", "tag": "t"}}, "tag is for tensorboard"),
        ({"id": "a", "progress": {"tensorboard": "x", "log": "y"}}, "either"),
        ({"id": "a", "progress": {"tensorboard": "x", "pattern": "y"}}, "for a log"),
    ],
)
def test_what_is_wrong_is_said(document: object, words: str) -> None:
    with pytest.raises(JobFileError) as refused:
        read_job_file(Path("/jobs/a.json"), json.dumps(document), Path("/progress"))
    assert words in str(refused.value)


def test_a_studys_folder_counts_from_its_file() -> None:
    json_text = json.dumps({"id": "s", "trials": {"folder": "mine"}, "spec": {}})
    job = read_job_file(Path("/jobs/a.json"), json_text, Path("/progress"))
    assert job.trial("t1").followed == Path("/jobs/mine/s.t1.jsonl")
    with pytest.raises(ValueError, match="no job's id"):
        job.trial("x" * 63)


def test_a_staged_spec_goes_back_to_what_it_was() -> None:
    spec = job_spec(iterations=100.0)
    staged = in_stage(spec, "s.r0", 9.0, 2)
    assert (staged.stage, staged.iterations, staged.rungs_left) == ("s.r0", 9.0, 2)
    assert JobSpec.model_validate_json(staged.model_dump_json()).tasks == spec.tasks
    assert staged.without_stage() == job_spec(iterations=9.0)
    assert in_stage(spec, "s.r0", None).iterations == 100.0


# What the controller lets a host's token do --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    controller = Controller(tmp_path_factory.mktemp("trials")).start()
    yield controller
    controller.stop()


def put(yard: Controller, job: str, port: int, token: str | None = HOST, **parts: Any) -> Any:
    tasks = [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]
    return yard.call("PUT", f"/v1/jobs/{job}", {"tasks": tasks} | parts, token=token)


def test_a_host_fills_stages_of_its_own_and_joins_no_others(yard: Controller) -> None:
    assert put(yard, "a", 5000, stage="own.r0").status_code == 201
    assert put(yard, "b", 5001, stage="own.r0").status_code == 201
    assert put(yard, "b", 5001, stage="own.r1").status_code == 200, "from rung to rung"
    assert put(yard, "theirs", 5002, None, stage="theirs.r0").status_code == 201
    refused = put(yard, "c", 5003, stage="theirs.r0")
    assert refused.status_code == 403
    assert "not of jobs of h1's token alone" in refused.json()["detail"]
    assert yard.call("PUT", "/v1/stages/empty", {"jobs": []}).status_code == 201
    assert put(yard, "c", 5003, stage="empty").status_code == 403, "an operator has put it"
    assert yard.call("PUT", "/v1/stages/empty", {"jobs": ["theirs"]}).status_code == 409
    assert put(yard, "placed", 5004).status_code == 201
    assert yard.call("PUT", "/v1/stages/empty", {"jobs": ["placed"]}).status_code == 200
    assert put(yard, "placed", 5004, stage="own.r0").status_code == 403, "an operator has put the job there"
    assert put(yard, "placed", 5004, iterations=5).status_code == 200
    assert put(yard, "theirs", 5002, None).status_code == 200
    assert put(yard, "c", 5003, stage="theirs.r0").status_code == 201, "its last job has left it"
    for job in ("a", "b", "c", "placed", "theirs"):
        yard.call("DELETE", f"/v1/jobs/{job}")
    yard.call("DELETE", "/v1/stages/empty")


def test_any_stage_where_the_settings_say_so(tmp_path: Path) -> None:
    controller = Controller(tmp_path, api={"host_stages": "any"}).start()
    try:
        assert put(controller, "theirs", 5002, None, stage="shared").status_code == 201
        assert put(controller, "a", 5000, stage="shared").status_code == 201
    finally:
        controller.stop()


def test_a_stage_that_is_refused_costs_the_job_its_stage_alone(
    yard: Controller, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = tmp_path / "token"
    token.write_text(HOST)
    faults: list[Exception] = []
    assert put(yard, "theirs", 5010, None, stage="s.r0").status_code == 201
    agent = Sender(Address(yard.url, token), "h1", 0.2, Notices(logging.getLogger("agent")), faults.append)
    agent.start()
    try:
        staged = in_stage(job_spec(5011), "s.r0", 9.0)
        assert isinstance(staged, StagedSpec)
        agent.declare("mine", staged)
        agent.add("mine", [Progress(3.0, time.time(), 0.5)])
        wait_until(lambda: yard.call("GET", "/v1/jobs/mine").json().get("iterations_done") == 3)
        state = yard.call("GET", "/v1/jobs/mine").json()
        assert (state["spec"]["stage"], state["spec"]["iterations"]) == (None, 9.0)
        assert "job mine goes on without stage s.r0" in caplog.text
        agent.declare("mine", in_stage(job_spec(5011), "s.r1", 27.0))
        wait_until(lambda: yard.call("GET", "/v1/jobs/mine").json()["spec"]["stage"] == "s.r1")
    finally:
        agent.stop()
    assert faults == []
    for job in ("mine", "theirs"):
        yard.call("DELETE", f"/v1/jobs/{job}")
