"""Who may have a part in a job: what the token of a host and that of a tenant cannot do, and what the audit says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.controller.api_cases import assert_problem, batch, spec
from tests.support.controller.roles_yard import RolesYard

JOB = "slurm-7"


@pytest.fixture
def yard(yard: RolesYard) -> Iterator[RolesYard]:
    """The module's controller. Each test begins without jobs."""
    yield yard
    for job in yard.call("GET", "/v1/jobs").json()["jobs"]:
        yard.call("DELETE", f"/v1/jobs/{job['id']}")


def put(yard: RolesYard, name: str, host: str, job: str = JOB, **parts: Any) -> Any:
    # Each test is a new launch: a job of this name was removed before.
    body = {"launcher": "slurm", "user": "ann", "arrival": time.time()} | parts
    return yard.by(name, "PUT", f"/v1/jobs/{job}/parts/{host}", body)


def hosts_of(yard: RolesYard, job: str = JOB) -> list[str]:
    return list(yard.call("GET", f"/v1/jobs/{job}").json().get("parts", ()))


def test_a_hosts_token_has_its_own_part_only(yard: RolesYard) -> None:
    assert put(yard, "h1", "h1").status_code == 201
    assert_problem(put(yard, "h1", "h2"), 404, "there is no host h2 for the token of host h1, which is its own")
    assert put(yard, "night", "h2").status_code == 201, "an operator's may put any"
    for host in ("h2", "no-such"):
        path = f"/v1/jobs/{JOB}/parts/{host}"
        assert_problem(yard.by("h1", "DELETE", path), 404, f"there is no host {host} for the token of host h1")
    assert hosts_of(yard) == ["h1", "h2"]
    assert yard.by("h1", "DELETE", f"/v1/jobs/{JOB}/parts/h1").status_code == 204
    assert hosts_of(yard) == ["h2"]


def test_a_viewer_has_no_part(yard: RolesYard) -> None:
    assert put(yard, "board", "h1").status_code == 403
    assert yard.by("board", "DELETE", f"/v1/jobs/{JOB}/parts/h1").status_code == 403


def test_a_host_does_not_join_the_job_of_another_user(yard: RolesYard) -> None:
    put(yard, "night", "h2", user="bob")
    for user in ("ann", None):
        assert_problem(put(yard, "h1", "h1", user=user), 403, f"job {JOB} belongs to another user")
    assert hosts_of(yard) == ["h2"]


def test_a_host_does_not_join_a_job_whose_launcher_names_other_hosts(yard: RolesYard) -> None:
    put(yard, "night", "h2", hosts=["h2", "h3"])
    assert_problem(put(yard, "h1", "h1"), 409, "h1 is not among them")
    assert_problem(put(yard, "h1", "h1", hosts=["h1"]), 409, "h1 is not among them")
    assert hosts_of(yard) == ["h2"]


def test_a_host_takes_neither_rank_0_nor_the_progress_of_another(yard: RolesYard) -> None:
    put(yard, "night", "h2", is_first=True)
    assert_problem(put(yard, "h1", "h1", is_first=True), 409, "rank 0", "is_first")
    assert put(yard, "h1", "h1").status_code == 201
    news = {"job": JOB, "points": [{"iteration": 9e8, "time": time.time()}], "diverged": True, "ended": True}
    answer = yard.by("h1", "POST", "/v1/hosts/h1/reports", batch(news)).json()
    assert "progress is taken from the host that rank 0 runs on" in answer["left_out"][0]["reason"]
    state = yard.call("GET", f"/v1/jobs/{JOB}").json()
    assert (state["state"], state["iterations_done"], state["diverged"]) == ("running", 0.0, False)
    assert [part["state"] for part in state["parts"].values()] == ["ended", "running"]


def test_a_host_ends_no_job_of_other_hosts(yard: RolesYard) -> None:
    put(yard, "night", "h2")
    assert_problem(yard.by("h1", "DELETE", f"/v1/jobs/{JOB}"), 404, f"there is no job {JOB}")
    assert_problem(yard.by("h1", "DELETE", f"/v1/jobs/{JOB}/parts/h1"), 404, f"there is no job {JOB}")
    put(yard, "h1", "h1")
    assert_problem(yard.by("h1", "DELETE", f"/v1/jobs/{JOB}"), 403, f"its own part: DELETE /v1/jobs/{JOB}/parts/h1")
    whole = {"tasks": [{"role": "worker", "host": "h1"}], "user": "ann"}
    assert_problem(yard.by("h1", "PUT", f"/v1/jobs/{JOB}", whole), 403, "runs on hosts that this spec leaves out")
    assert hosts_of(yard) == ["h1", "h2"]
    assert yard.call("DELETE", f"/v1/jobs/{JOB}").status_code == 204, "an operator may"


def test_a_host_makes_no_job_old(yard: RolesYard) -> None:
    assert put(yard, "h1", "h1", job="young", arrival=time.time() - 7 * 86400).status_code == 201
    assert time.time() - 90 < yard.call("GET", "/v1/jobs/young").json()["arrival"]
    put(yard, "night", "h2", job="old", arrival=time.time() - 86400)
    assert yard.call("GET", "/v1/jobs/old").json()["arrival"] < time.time() - 86000, "an operator's word counts"


def test_a_registered_job_is_none_of_a_strangers(yard: RolesYard) -> None:
    tasks = [{"role": "worker", "host": "h2"}]
    yard.call("PUT", "/v1/jobs/whole", {"tasks": tasks, "user": "ann"})
    assert_problem(put(yard, "h1", "h1", job="whole"), 409, "registered whole, with other hosts or another user")
    assert yard.call("GET", "/v1/jobs/whole").json()["spec"]["tasks"][0]["host"] == "h2"


def test_a_tenant_has_parts_in_its_own_jobs(yard: RolesYard) -> None:
    assert put(yard, "vision", "h1", job="vision-1").status_code == 201
    assert put(yard, "vision", "h2", job="vision-1").status_code == 201
    assert_problem(put(yard, "vision", "h1", job="other"), 403, "begin with vision-", "id")
    assert_problem(put(yard, "vision", "h1", job="vision-2", user="cem"), 403, "ann or bob", "user")
    put(yard, "night", "h1", job="of-cem", user="cem")
    assert_problem(put(yard, "vision", "h2", job="of-cem", user="cem"), 403, "vision cannot have the name of-cem")
    theirs = yard.by("vision", "DELETE", "/v1/jobs/of-cem/parts/h1")
    assert_problem(theirs, 404, "there is no job of-cem")
    assert hosts_of(yard, "of-cem") == ["h1"]
    assert yard.by("vision", "DELETE", "/v1/jobs/vision-1/parts/h1").status_code == 204
    assert hosts_of(yard, "vision-1") == ["h2"]


def test_a_tenant_has_no_more_jobs_by_parts(yard: RolesYard) -> None:
    for i in range(3):
        assert put(yard, "vision", "h1", job=f"vision-{i}").status_code == 201
    assert_problem(put(yard, "vision", "h1", job="vision-3"), 403, "3 are the most")
    assert put(yard, "vision", "h2", job="vision-2").status_code == 201, "it has that job"


def test_the_audit_says_who_has_told_what(yard: RolesYard) -> None:
    since = int(yard.call("GET", "/v1/audit").json()["newest"])
    put(yard, "h1", "h1", arrival=(now := time.time()), ranks=4, hosts=["h1", "h2"])
    put(yard, "h1", "h1", arrival=now, ranks=4, hosts=["h1", "h2"])  # changes nothing
    put(yard, "h1", "h1", arrival=now, ranks=8, hosts=["h1", "h2"])
    put(yard, "h1", "h1", arrival=now, user="bob")
    yard.call("PUT", "/v1/jobs/whole", spec(5009, user="ann"))
    put(yard, "h1", "h1", job="whole")  # changes nothing either
    yard.by("h1", "DELETE", f"/v1/jobs/{JOB}/parts/h1")
    records = yard.call("GET", f"/v1/audit?since={since}").json()["records"]
    mine = [record for record in records if record["action"].endswith("/parts/{host}")]
    assert [(record["who"], record["action"].split()[0], record["status"]) for record in mine] == [
        ("h1", "PUT", 201),
        ("h1", "PUT", 200),
        ("h1", "PUT", 403),
        ("h1", "DELETE", 204),
    ]
    assert mine[0]["before"] is None
    assert mine[0]["after"]["hosts"] == ["h1", "h2"]
    assert (mine[1]["before"], mine[1]["after"]) == ({"ranks": 4}, {"ranks": 8})
    assert mine[3]["before"]["ranks"] == 8
