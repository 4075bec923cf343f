"""What a job would wait for with another weight, target or policy: said by a dry run, and never applied."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from controller.api.calls.explain import with_job_changed
from controller.model import Host, Job, Snapshot
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.roles_yard import RolesYard

PREDICTED = {"seconds": 0.05, "low": 0.04, "high": 0.07}


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RolesYard]:
    """A controller under Sincronia, which goes by weights, with a large job and a small one at the same ports."""
    yard = RolesYard(tmp_path_factory.mktemp("explain"), policy="sincronia")
    yard.start()
    for name, port, size in (("small", 5000, 1e6), ("large", 5001, 5e6)):
        told = {"predicted": PREDICTED} if name == "large" else {}
        body = spec(port, demand=[{"src": "h2", "dst": "h1", "bytes": size}], user="ann", **told)
        assert yard.call("PUT", f"/v1/jobs/{name}", body).status_code == 201
    wait_until(lambda: len(yard.call("GET", "/v1/plan").json().get("classes", ())) == 2, what="a plan with both")
    yield yard
    yard.stop()


def explained(yard: RolesYard, query: str = "", name: str = "night") -> Any:
    return yard.by(name, "GET", f"/v1/jobs/large/explain{query}")


def test_the_wait_is_said_port_by_port(yard: RolesYard) -> None:
    answer = explained(yard).json()
    assert (answer["service_class"], answer["position"], answer["jobs_before"]) == (1, 1, ["small"])
    assert (answer["before_count"], answer["alike_count"]) == (1, 0), "it meets one job, at both ports"
    assert {port["port"] for port in answer["ports"]} == {"h1 ingress", "h2 egress"}
    for port in answer["ports"]:
        assert port["seconds_before"] == pytest.approx(0.4), "50 iterations of 1 MB at 1 Gbit/s"
        (before,) = port["before"]
        assert (before["job"], before["service_class"]) == ("small", 0)
        assert (port["before_count"], port["alike_count"], port["after_count"]) == (1, 0, 0)
        assert port["own_seconds_left"] == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["night", "board"])
def test_another_weight_would_help_and_nothing_is_applied(yard: RolesYard, name: str) -> None:
    epoch = yard.call("GET", "/v1/plan").json()["epoch"]
    heavy = explained(yard, "?weight=100", name).json()
    assert (heavy["position"], heavy["jobs_before"]) == (0, [])
    assert [port["seconds_before"] for port in heavy["ports"]] == [0.0, 0.0]
    assert [port["after_count"] for port in heavy["ports"]] == [1, 1]
    assert explained(yard, "?weight=1", name).json()["position"] == 1
    plan = yard.call("GET", "/v1/plan").json()
    assert (plan["epoch"], plan["classes"]) == (epoch, {"small": 0, "large": 1})
    assert yard.call("GET", "/v1/jobs/large").json()["spec"]["weight"] == 1.0


def test_another_policy_or_target(yard: RolesYard) -> None:
    fair = explained(yard, "?policy=fair").json()
    assert (fair["policy"], fair["jobs_before"]) == ("fair", [])
    assert {port["alike_count"] for port in fair["ports"]} == {1}
    assert (fair["before_count"], fair["alike_count"]) == (0, 1)
    assert [port["seconds_beside"] for port in fair["ports"]] == pytest.approx([0.4, 0.4])
    aimed = explained(yard, "?policy=jpas&target=-1.5e-3").json()
    assert (aimed["policy"], aimed["target"]) == ("jpas", -0.0015)
    assert explained(yard).json()["target"] is None


def test_weights_are_tried_beside_each_other_and_who_pays_is_named(yard: RolesYard) -> None:
    answer = explained(yard, "?weights=1,100").json()
    plan = yard.call("GET", "/v1/plan").json()
    assert (answer["epoch"], answer["service_class"]) == (plan["epoch"], 1), "the rest is as it is in force"
    assert abs(answer["planned_at"] - time.time()) < 60
    now, same, heavy = answer["outcomes"]
    assert [(each["weight"], each["later_count"]) for each in (now, same, heavy)] == [(1.0, 0), (1.0, 0), (100.0, 1)]
    assert now["service_class"] == same["service_class"] == 1
    assert now["wait"] == plan["waits"]["large"] | {"seconds_before": pytest.approx(0.4)}
    assert now["wait"]["seconds_until_served"] == pytest.approx(2.4)
    assert (now["wait"]["first"], heavy["wait"]["first"], heavy["wait"]["seconds_before"]) == ("small", None, 0.0)
    (pays,) = heavy["later"]
    assert (pays["job"], pays["seconds"], pays["seconds_now"]) == ("small", pytest.approx(2.0), 0.0)


def test_a_change_is_said_beside_the_plan_in_force(yard: RolesYard) -> None:
    answer = explained(yard, "?policy=fair").json()
    now, fair = answer["outcomes"]
    assert (now["policy"], now["service_class"]) == ("sincronia", 1)
    assert (fair["policy"], fair["service_class"], fair["wait"]["alike_count"]) == ("fair", 0, 1)
    assert (fair["wait"]["seconds_before"], fair["wait"]["seconds_beside"]) == (0.0, pytest.approx(0.4))
    assert fair["wait"]["seconds_until_served"] == pytest.approx(2.4), "sharing brings the last to its end no sooner"
    (pays,) = fair["later"]
    assert (pays["job"], pays["seconds"], pays["seconds_now"]) == ("small", pytest.approx(2.0), 0.0)
    assert explained(yard).json()["outcomes"] == []


def test_another_policy_is_compared_with_the_plan_in_force_at_one_moment(yard: RolesYard) -> None:
    fair = yard.call("GET", "/v1/plan?policy=fair").json()
    in_force = fair["in_force"]
    assert (fair["policy"], in_force["policy"], "in_force" in in_force) == ("fair", "sincronia", False)
    assert in_force["classes"] == {"small": 0, "large": 1}
    assert fair["lower_bound_seconds"] == pytest.approx(in_force["lower_bound_seconds"]), "of the same snapshot"
    for each in (fair, in_force):
        served = [wait["seconds_until_served"] for wait in each["waits"].values()]
        assert sum(served) / len(served) == pytest.approx(each["objective_seconds"]), "the pages of jobs say the same"


@pytest.mark.parametrize(
    ("query", "field", "said"),
    [
        ("?policy=best", "policy", "best"),
        ("?weight=0", "weight", "'0' is no number above 0 and up to 1e+09, such as 2 or 0.5"),
        ("?weight=nan", "weight", "is no number"),
        ("?weight=", "weight", "is no number"),
        ("?target=1e31", "target", "is no number from -1e+30 to 1e+30"),
        ("?target=high", "target", "is no number"),
        ("?weigth=2", "weigth", "unknown query parameter; there are: policy, weight, weights, target"),
        ("?weights=2,0", "weights", "'0' is no number above 0"),
        ("?weights=1,2,3,4,5,6,7,8,9", "weights", "9 numbers; 8 are the most"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(yard: RolesYard, query: str, field: str, said: str) -> None:
    assert_problem(explained(yard, query), 422, said, field)


def test_a_prediction_is_kept_and_told_beside_what_is_measured(yard: RolesYard) -> None:
    assert yard.call("GET", "/v1/jobs/large").json()["spec"]["predicted"] == PREDICTED
    assert explained(yard).json()["prediction"] == PREDICTED | {"measured": None, "off": None}
    small = yard.by("night", "GET", "/v1/jobs/small/explain").json()
    assert small["prediction"] is None, "who declares none is not judged"
    disordered = spec(5003, predicted=PREDICTED | {"low": 0.06})
    assert_problem(yard.call("PUT", "/v1/jobs/other", disordered), 422, "low, seconds and high must be in this order")


def test_a_tenant_tries_no_other_plans(yard: RolesYard) -> None:
    assert explained(yard, name="vision").status_code == 200
    for query in ("?weight=2", "?policy=fair", "?target=0.5", "?policy=best"):
        refused = explained(yard, query, "vision")
        assert_problem(refused, 403, "vision is a tenant, who may only read and change its own jobs")
        assert refused.json()["detail"].endswith("is for: operator or viewer")
    hidden = yard.by("speech", "GET", "/v1/jobs/large/explain?weight=2")
    assert_problem(hidden, 404, "there is no job large")


def test_a_job_that_has_ended_is_not_tried(yard: RolesYard) -> None:
    yard.call("PUT", "/v1/jobs/over", spec(5002))
    yard.by("h1", "POST", "/v1/hosts/h1/reports", batch({"job": "over", "ended": True}, sent_at=time.time()))
    assert_problem(yard.call("GET", "/v1/jobs/over/explain?weight=2"), 409, "job over is ended")


def test_a_change_is_of_one_job_and_of_what_it_names() -> None:
    known = Snapshot(0.0, {"h1": Host("h1")}, (Job("a", weight=2.0, target=0.5), Job("b")))
    changed = with_job_changed("a", None, 0.9, known)
    assert (changed.jobs[0].weight, changed.jobs[0].target) == (2.0, 0.9)
    assert changed.jobs[1] is known.jobs[1]
    assert with_job_changed("a", 3.0, None, known).jobs[0] == Job("a", weight=3.0, target=0.5)


def test_the_spec_that_is_read_can_be_sent_with_another_weight_and_the_job_goes_on(yard: RolesYard) -> None:
    """That is what pages and commands tell people to do."""
    before = yard.call("GET", "/v1/jobs/large").json()
    for weight in (2.0, before["spec"]["weight"]):
        assert yard.call("PUT", "/v1/jobs/large", before["spec"] | {"weight": weight}).status_code == 200
        after = yard.call("GET", "/v1/jobs/large").json()
        assert after["spec"]["weight"] == weight
        assert [after[name] for name in ("arrival", "state", "iterations_done")] == [
            before[name] for name in ("arrival", "state", "iterations_done")
        ]
