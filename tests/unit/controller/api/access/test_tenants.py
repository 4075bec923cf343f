"""What a tenant may do: its own jobs, within its bounds, and nothing of others."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controller.access.caller import Caller, Role, Tenancy
from controller.api.tenants import without_others
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, spec
from tests.support.controller.api.roles_yard import RolesYard


@pytest.fixture
def yard(yard: RolesYard) -> Iterator[RolesYard]:
    """The module's controller. Each test begins without jobs."""
    yield yard
    for job in yard.call("GET", "/v1/jobs").json()["jobs"]:
        yard.call("DELETE", f"/v1/jobs/{job['id']}")


def put(yard: RolesYard, name: str, job: str, port: int = 5000, **parts: Any) -> Any:
    return yard.by(name, "PUT", f"/v1/jobs/{job}", spec(port, **parts))


def listed(yard: RolesYard, name: str) -> set[str]:
    return {job["id"] for job in yard.by(name, "GET", "/v1/jobs").json()["jobs"]}


def test_a_tenant_registers_reads_changes_and_removes_its_own_jobs(yard: RolesYard) -> None:
    assert put(yard, "vision", "vision-1", user="ann").status_code == 201
    assert put(yard, "vision", "vision-1", user="bob", iterations=70).status_code == 200
    assert yard.by("vision", "GET", "/v1/jobs/vision-1").json()["spec"]["iterations"] == 70
    assert yard.by("vision", "DELETE", "/v1/jobs/vision-1").status_code == 204


def test_a_tenant_sees_its_own_jobs_only(yard: RolesYard) -> None:
    put(yard, "night", "by-user", 5001, user="ann")
    put(yard, "night", "vision-by-prefix", 5002)
    put(yard, "night", "of-cem", 5003, user="cem")
    put(yard, "night", "of-nobody", 5004)
    assert listed(yard, "vision") == {"by-user", "vision-by-prefix"}
    assert listed(yard, "speech") == {"of-cem"}
    assert listed(yard, "board") == {"by-user", "vision-by-prefix", "of-cem", "of-nobody"}


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/jobs/{}"), ("GET", "/v1/jobs/{}/explain"), ("DELETE", "/v1/jobs/{}")],
)
def test_a_job_of_others_is_answered_as_one_that_does_not_exist(yard: RolesYard, method: str, path: str) -> None:
    put(yard, "speech", "theirs", user="cem")
    theirs = yard.by("vision", method, path.format("theirs"))
    missing = yard.by("vision", method, path.format("nobody"))
    assert_problem(theirs, 404, "there is no job theirs")
    assert theirs.text.replace("theirs", "nobody") == missing.text
    assert yard.by("speech", "GET", "/v1/jobs/theirs").status_code == 200, "and it is as it was"


def test_a_job_of_others_cannot_be_taken_over(yard: RolesYard) -> None:
    put(yard, "speech", "theirs", user="cem")
    assert_problem(put(yard, "vision", "theirs", user="ann"), 403, "vision cannot have the name theirs; choose another")
    put(yard, "night", "plain", 5001)
    assert_problem(put(yard, "speech", "plain", user="cem"), 403, "speech cannot have the name plain")
    assert yard.call("GET", "/v1/jobs/theirs").json()["spec"]["user"] == "cem"


def test_whose_traffic_it_is_is_not_told(yard: RolesYard) -> None:
    put(yard, "speech", "secret-name", 5000, user="cem")
    refused = put(yard, "vision", "vision-1", 5000, user="ann")
    assert_problem(refused, 409, "job vision-1 and another one both claim")
    assert "secret-name" not in refused.text
    put(yard, "vision", "vision-1", 5001, user="ann")
    assert "vision-1" in put(yard, "vision", "vision-2", 5001, user="ann").text, "of its own it is"


def test_explain_names_no_jobs_of_others(yard: RolesYard) -> None:
    put(yard, "speech", "secret-name", 5000, user="cem")
    put(yard, "vision", "vision-1", 5001, user="ann")
    put(yard, "vision", "vision-2", 5002, user="ann")

    def explained(name: str) -> Any:
        return yard.by(name, "GET", "/v1/jobs/vision-2/explain")

    wait_until(lambda: explained("vision").status_code == 200, what="a plan")
    wait_until(lambda: len(explained("board").json()["jobs_before"]) == 2, what="a plan with all three")
    assert explained("board").json()["jobs_before"] == ["secret-name", "vision-1"]
    assert explained("vision").json()["jobs_before"] == ["vision-1"]
    assert "secret-name" not in explained("vision").text
    (seen, *_), (own, *_) = explained("board").json()["ports"], explained("vision").json()["ports"]
    assert {other["job"] for other in seen["before"]} == {"secret-name", "vision-1"}
    assert {other["job"] for other in own["before"]} == {"another job", "vision-1"}
    assert own["seconds_before"] == pytest.approx(seen["seconds_before"], rel=0.1), "numbers are told"


def test_a_reason_names_no_jobs_of_others() -> None:
    users = {"secret-name": "cem", "vision-1": None, "v2": "ann", "x": "cem"}
    vision = Caller("vision", Role.TENANT, tenancy=Tenancy(("ann",), "vision-"))
    reason = "served beside secret-name, which is heavy; before vision-1 and v2, x. 0.5 s left"
    masked = "served beside another job, which is heavy; before vision-1 and v2, another job. 0.5 s left"
    assert without_others(vision, reason, users) == masked
    assert without_others(Caller("board", Role.VIEWER), reason, users) == reason


@pytest.mark.parametrize(
    ("job", "parts", "field", "said"),
    [
        ("other", {"user": "ann"}, "id", "new jobs of vision have names that begin with vision-"),
        ("vision-1", {}, "user", "a job of vision says whose it is: ann or bob"),
        ("vision-1", {"user": "cem"}, "user", "a job of vision says whose it is: ann or bob"),
        ("vision-1", {"user": "ann", "weight": 2.5}, "weight", "2 is the most for this tenant"),
        ("vision-1", {"user": "ann", "arrival": 1.0}, "arrival", "which only an operator's token may say"),
        ("vision-1", {"user": "ann", "stage": "put"}, "stage", "stage put is not of this tenant's jobs alone"),
        ("vision-1", {"user": "ann", "stage": "theirs"}, "stage", "stage theirs is not of this tenant's jobs alone"),
    ],
)
def test_what_is_beyond_its_bounds_is_refused_with_the_reason(
    yard: RolesYard, job: str, parts: dict[str, Any], field: str, said: str
) -> None:
    put(yard, "night", "others", 6000, stage="theirs")
    yard.call("PUT", "/v1/stages/put", {"jobs": []})
    assert_problem(put(yard, "vision", job, **parts), 403, said, field)
    assert yard.call("GET", f"/v1/jobs/{job}").status_code == 404
    yard.call("DELETE", "/v1/stages/put")


def test_all_faults_are_named(yard: RolesYard) -> None:
    refused = put(yard, "vision", "other", weight=9.0, arrival=1.0)
    assert [error["field"] for error in refused.json()["errors"]] == ["id", "user", "weight", "arrival"]


def test_a_weight_up_to_the_bound_an_own_stage_and_a_waiting_file_are_taken(yard: RolesYard) -> None:
    parts = {"user": "ann", "weight": 2.0, "stage": "rung", "arrival": time.time() - 30}
    assert put(yard, "vision", "vision-1", 5000, **parts).status_code == 201
    assert put(yard, "vision", "vision-2", 5001, **parts).status_code == 201


def test_what_an_operator_has_given_a_job_it_keeps(yard: RolesYard) -> None:
    given = {"user": "ann", "weight": 9.0, "arrival": 1.0}
    assert put(yard, "night", "vision-1", **given).status_code == 201
    assert put(yard, "vision", "vision-1", **given, iterations=60).status_code == 200
    assert_problem(put(yard, "vision", "vision-1", **given | {"weight": 9.5}), 403, "9 is the most", "weight")


def test_a_tenant_has_so_many_jobs_at_a_time(yard: RolesYard) -> None:
    for number in range(3):
        assert put(yard, "vision", f"vision-{number}", 5000 + number, user="ann").status_code == 201
    refused = put(yard, "vision", "vision-9", 5009, user="bob")
    assert_problem(refused, 403, "vision has 3 running jobs, and 3 are the most; let some end")
    assert put(yard, "vision", "vision-2", 5002, user="ann", iterations=9).status_code == 200, "its own may change"
    assert put(yard, "speech", "other", 5010, user="cem").status_code == 201, "others have their own room"
    yard.by("vision", "DELETE", "/v1/jobs/vision-0")
    assert put(yard, "vision", "vision-9", 5009, user="bob").status_code == 201


def test_a_tenant_cannot_fill_the_memory(yard: RolesYard) -> None:
    most = {"demand": [{"src": "h1", "dst": "h2", "bytes": 1}] * 40_000, "user": "ann"}
    assert yard.by("vision", "PUT", "/v1/jobs/vision-1", most).status_code == 201
    refused = yard.by("vision", "PUT", "/v1/jobs/vision-2", most)
    assert_problem(refused, 403, "the jobs of vision would name 80000 tasks, demands and flows; 65536 is the most")
