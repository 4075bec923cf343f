"""The calls on parts of jobs, of a controller without tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import eventlet
import pytest

from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.served import Served, served


@pytest.fixture
def api() -> Iterator[Served]:
    with served() as made:
        yield made


def put(api: Served, host: str = "h1", job: str = "slurm-7", **parts: Any) -> Any:
    body = {"launcher": "slurm", "user": "alice"} | parts
    return api.call("PUT", f"/v1/jobs/{job}/parts/{host}", body)


def job(api: Served, name: str = "slurm-7") -> Any:
    return api.call("GET", f"/v1/jobs/{name}").json()


def explained(api: Served, name: str) -> Any:
    """Why a job has its class, as soon as it is in the plan."""
    path = f"/v1/jobs/{name}/explain"
    wait_until(lambda: api.call("GET", path).status_code == 200, sleep=eventlet.sleep)
    return api.call("GET", path).json()


def test_parts_become_one_job(api: Served) -> None:
    first = put(api, "h1", is_first=True, world_size=4, ranks=2, hosts=["h1", "h2", "h3"], model="resnet50")
    assert first.status_code == 201
    assert first.json() == {"job": "slurm-7", "host": "h1", "joined": True, "parts": 1}
    assert put(api, "h2", ranks=2, hosts=["h1", "h2", "h3"]).json()["parts"] == 2
    state = job(api)
    tasks = [{"role": "peer", "host": host, "port": None, "protocol": "tcp"} for host in ("h1", "h2")]
    assert state["spec"]["tasks"] == tasks
    assert state["spec"]["user"] == "alice"
    assert state["spec"]["model"] == "resnet50"
    assert state["missing"] == ["h3"]
    assert list(state["parts"]) == ["h1", "h2"]
    assert state["parts"]["h1"] == {
        "launcher": "slurm",
        "state": "running",
        "is_first": True,
        "world_size": 4,
        "ranks": 2,
        "arrival": None,
    }
    assert explained(api, "slurm-7")["found"] == {
        "launcher": "slurm",
        "first": "h1",
        "hosts": ["h1", "h2"],
        "missing": ["h3"],
    }


def test_a_job_that_was_registered_whole_has_no_parts(api: Served) -> None:
    assert api.call("PUT", "/v1/jobs/a", spec(5000)).status_code == 201
    assert "parts" not in job(api, "a")
    assert explained(api, "a")["found"] is None


def test_the_same_part_again_changes_nothing(api: Served) -> None:
    asked: list[str] = []
    api.yard.registry.subscribe(lambda reason, _received_at: asked.append(reason))
    assert put(api).status_code == 201
    assert asked, "a new job asks for a plan"
    asked.clear()
    assert put(api).status_code == 200
    assert asked == []


def test_a_part_of_an_unknown_host_is_refused_as_its_reports_are(api: Served) -> None:
    part, report = put(api, "h9"), api.call("POST", "/v1/hosts/h9/reports", batch())
    assert_problem(part, 404, "there is no host h9; there are: h1, h2, h3")
    assert_problem(report, 404, part.json()["detail"])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "launcher"),
        ({"launcher": ""}, "launcher"),
        ({"launcher": "slurm", "rank": 0}, "rank"),
        ({"launcher": "slurm", "user": "a\x1b[2J"}, "user"),
        ({"launcher": "slurm", "ranks": 0}, "ranks"),
        ({"launcher": "slurm", "hosts": ["h1", "../h2"]}, "hosts.1"),
        ({"launcher": "slurm", "hosts": [f"h{i}" for i in range(4097)]}, "hosts"),
        ({"launcher": "slurm", "hosts": ["h2"]}, "hosts"),
        ({"launcher": "slurm", "arrival": -1}, "arrival"),
    ],
)
def test_a_wrong_part_is_refused_by_its_field(api: Served, body: Any, field: str) -> None:
    refused = api.call("PUT", "/v1/jobs/slurm-7/parts/h1", body)
    assert_problem(refused, 422, "", field)
    assert api.call("GET", "/v1/jobs/slurm-7").status_code == 404


def test_a_part_that_names_4096_hosts_is_taken(api: Served) -> None:
    names = ["h1", *(f"other-{i}" for i in range(4095))]
    assert put(api, hosts=names).status_code == 201
    assert len(job(api)["missing"]) == 4095


def test_a_part_is_removed_by_its_launch(api: Served) -> None:
    arrival = time.time() - 5
    put(api, "h1")
    put(api, "h2", arrival=arrival)
    path = "/v1/jobs/slurm-7/parts/h2"
    assert api.call("DELETE", f"{path}?arrival={arrival - 3600}").status_code == 204, "a late one of an earlier launch"
    assert list(job(api)["parts"]) == ["h1", "h2"]
    assert api.call("DELETE", f"{path}?arrival={arrival}").status_code == 204
    assert api.call("DELETE", path).status_code == 204, "twice is harmless"
    assert list(job(api)["parts"]) == ["h1"]
    assert put(api, "h2", arrival=arrival).status_code == 200, "the part of that launch comes too late"
    assert list(job(api)["parts"]) == ["h1"]
    assert_problem(api.call("DELETE", "/v1/jobs/slurm-7/parts/h3"), 404, "job slurm-7 has no part of host h3")
    assert_problem(api.call("DELETE", f"{path}?arrival=soon"), 422, "no number", "arrival")


def test_a_job_without_a_part_left_has_ended(api: Served) -> None:
    put(api, "h1")
    assert api.call("DELETE", "/v1/jobs/slurm-7/parts/h1").status_code == 204
    state = job(api)
    assert state["state"] == "ended"
    assert state["parts"]["h1"]["state"] == "ended"
    assert_problem(put(api, "h1"), 409, "a new launch says when that began", "arrival")
    assert put(api, "h1", arrival=time.time()).status_code == 201


def test_whole_jobs_win(api: Served) -> None:
    api.call("PUT", "/v1/jobs/a", spec(5000, user="alice"))
    before = job(api, "a")["spec"]
    for host, parts in (("h1", {}), ("h2", {"user": None})):
        answer = put(api, host, "a", **parts)
        assert (answer.status_code, answer.json()["joined"]) == (200, False)
    assert job(api, "a")["spec"] == before
    assert_problem(put(api, "h3", "a"), 409, "registered whole")
    assert_problem(put(api, "h1", "a", user="bob"), 409, "registered whole")
    assert_problem(api.call("DELETE", "/v1/jobs/a/parts/h1"), 409, "registered whole; DELETE /v1/jobs/a removes it")
    put(api, "h1", "b")
    assert api.call("PUT", "/v1/jobs/b", spec(5001)).status_code == 200, "an operator may"
    assert "parts" not in job(api, "b")


def test_another_users_part_is_refused(api: Served) -> None:
    put(api, "h1")
    for user in ("bob", None):
        assert_problem(put(api, "h2", user=user), 403, "job slurm-7 belongs to another user")
    assert list(job(api)["parts"]) == ["h1"]
