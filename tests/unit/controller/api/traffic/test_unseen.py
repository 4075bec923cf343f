"""What the API says of bytes that leave by ways that are not seen, from an agent's report to the sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controller.api.exposition import interfaces
from controller.cli.explain.facts import facts
from controller.events.changes import problem_data
from controller.wire import Explanation, HostList, JobState
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import assert_problem, batch, spec
from tests.support.controller.api.roles_yard import RolesYard
from tests.support.controller.api.samples import Samples
from tests.support.controller.api.served import Served, served

ETH0 = {"interface": "eth0", "kind": "network", "sent": 5e9, "received": 4e9, "unseen_sent": 3e9}
ETH0_UNSEEN = ETH0 | {"unseen_sent_rate": 1e9, "unseen_received_rate": 2.34e6}
RDMA_UNSEEN = {"interface": "mlx5_0:1", "kind": "rdma", "sent": 7e9, "unseen_sent": 7e9, "unseen_sent_rate": 25e9}
HEAD = (
    "bytes on eth0 of host h1 are of no connection that is seen, and switches order them by the addresses of hosts at "
    "best"
)
WAYS = (
    "by UDP, a tunnel, or a container or virtual machine whose sockets the agent does not see; the host's interface "
    "serves them as other traffic; CAP_SYS_ADMIN lets the agent look into the containers of jobs, and a job can "
    "declare its UDP (protocol: udp)"
)


@pytest.fixture
def api() -> Iterator[Served]:
    with served(period_seconds=0.5, gate_seconds=15) as there:
        yield there


def put(api: Served, *jobs: str) -> None:
    for number, job in enumerate(jobs):
        assert api.call("PUT", f"/v1/jobs/{job}", spec(5000 + number)).ok


def report(api: Served, *interfaces: dict[str, Any], host: str = "h1") -> None:
    assert api.call("POST", f"/v1/hosts/{host}/reports", batch(interfaces=list(interfaces))).ok


def problems(api: Served) -> list[str]:
    return [each for each in api.call("GET", "/v1/status").json()["problems"] if "no connection" in each]


def explained(api: Served, job: str) -> Explanation:
    wait_until(lambda: api.call("GET", f"/v1/jobs/{job}/explain").ok, what="a plan with the job")
    return Explanation.model_validate_json(api.call("GET", f"/v1/jobs/{job}/explain").content)


def test_one_job_that_alone_runs_on_the_host_is_named(api: Served) -> None:
    put(api, "a")
    report(api, ETH0)
    assert problems(api) == []
    report(api, ETH0_UNSEEN)
    amount = "about 8 Gbit/s sent and about 19 Mbit/s received"
    assert problems(api) == [f"{HEAD}: {amount}, of job a, which alone runs there, or of another program, {WAYS}"]
    ready = api.call("GET", "/readyz").json()
    assert not [each for each in ready["problems"] if "h1" in each], (
        "a job makes nothing degraded, and is not told to all"
    )
    own = f"{HEAD}: {amount}, of this job, which alone runs there, or of another program, {WAYS}"
    answer = explained(api, "a")
    assert answer.problems == (own,)
    assert ("problem", own) in list(facts(answer))
    for state in (api.call("GET", "/v1/jobs/a").json(), *api.call("GET", "/v1/jobs").json()["jobs"]):
        assert JobState.model_validate(state).problems == (own,)


def test_of_several_jobs_it_is_said_that_it_may_be_any_of_them(api: Served) -> None:
    put(api, "a", "b")
    report(api, RDMA_UNSEEN)
    (said,) = problems(api)
    assert "about 200 Gbit/s sent, of job a or b, or of another program, by RDMA, past TCP; " in said
    assert (
        "the host's interface does not order RDMA; a job can declare it (protocol: rocev2), or NCCL_IB_DISABLE=1"
        in said
    )
    assert "of this job or the other one there, or of another program, by RDMA" in explained(api, "a").problems[0]
    put(api, "a", "b", "c", "d", "e", "f")
    (said,) = problems(api)
    assert "of job a or b or c or d or one of 2 more, or of another program, by RDMA" in said
    assert "of this job or one of the 5 others there, or of another program, by RDMA" in explained(api, "f").problems[0]


def test_what_a_job_there_declares_is_no_problem(api: Served) -> None:
    put(api, "a")
    report(api, RDMA_UNSEEN, ETH0_UNSEEN)
    pair = {"src": "h2", "dst": "h1"}
    for flow, left in (
        (pair | {"dst_port": 7000, "protocol": "udp"}, ["mlx5_0:1"]),
        (pair | {"protocol": "rocev2"}, []),
        (pair | {"dst_port": 7000}, ["mlx5_0:1", "eth0"]),
    ):
        assert api.call("PUT", "/v1/jobs/b", {"flows": [flow], "demand": [pair | {"bytes": 1e6}]}).ok
        assert [said.split()[2] for said in problems(api)] == left, flow
    assert len(explained(api, "a").problems) == 2


def test_of_many_interfaces_some_are_named_and_the_rest_counted(api: Served) -> None:
    put(api, "a")
    report(api, *(ETH0_UNSEEN | {"interface": f"eth{number}"} for number in range(64)))
    for said, most in ((problems(api), 20), (explained(api, "a").problems, 4)):
        named = [each for each in said if "no connection" in each]
        assert len(named) == most
    rest = [each for each in api.call("GET", "/v1/status").json()["problems"] if "more interfaces" in each]
    assert rest == ["more interfaces carry bytes that are not seen: 44; GET /v1/hosts has them"]
    (one, *_) = HostList.model_validate_json(api.call("GET", "/v1/hosts").content).hosts
    assert len(one.problems) == len(one.interfaces) == 64


def test_it_is_no_problem_where_no_job_runs_and_none_of_a_job_elsewhere(api: Served) -> None:
    report(api, ETH0_UNSEEN, host="h3")
    assert problems(api) == []
    put(api, "a")
    assert problems(api) == []
    assert explained(api, "a").problems == ()


def test_it_ends_with_the_next_word_of_the_agent_with_its_lease_and_with_its_session(api: Served) -> None:
    put(api, "a")
    for end in (
        lambda: report(api, ETH0),
        lambda: report(api),
        lambda: api.call("POST", "/v1/hosts/h1/reports", batch(session="another-agent")),
    ):
        report(api, ETH0_UNSEEN)
        assert len(problems(api)) == 1
        api.call("POST", "/v1/hosts/h1/reports", batch())
        assert len(problems(api)) == 1, "a report without a word on interfaces changes nothing"
        end()
        assert problems(api) == []
    api.yard.registry.change_hosts(api.yard.registry.hosts, lease_seconds=3.0)
    assert api.call("POST", "/v1/hosts/h1/reports", batch(session="third", interfaces=[ETH0_UNSEEN])).ok
    assert len(problems(api)) == 1
    wait_until(lambda: problems(api) == [])


def test_hosts_have_their_interfaces(api: Served) -> None:
    put(api, "a")
    report(api, ETH0_UNSEEN, RDMA_UNSEEN)
    one, two, _ = HostList.model_validate_json(api.call("GET", "/v1/hosts").content).hosts
    assert [each.model_dump(exclude_defaults=True) for each in one.interfaces] == [ETH0_UNSEEN, RDMA_UNSEEN]
    assert [each.partition(": ")[0] for each in one.problems] == [HEAD, HEAD.replace("eth0", "mlx5_0:1")]
    assert (two.interfaces, two.problems) == ((), ())


def test_the_metrics_count_by_host_interface_and_direction(api: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    put(api, "a")
    report(api, ETH0_UNSEEN, RDMA_UNSEEN | {"unseen_sent_rate": None})
    found = Samples(api.call("GET", "/metrics").text)
    sent = {"host": "h1", "interface": "eth0", "direction": "sent"}
    assert (sent, 5e9) in found.of("trainyard_interface_bytes_total")
    assert (sent, 3e9) in found.of("trainyard_interface_unseen_bytes_total")
    assert found.by("interface", "trainyard_interface_unseen") == {"eth0": 1, "mlx5_0:1": 0}
    assert found.value("trainyard_unseen_hosts") == 1
    monkeypatch.setattr(interfaces, "MOST_INTERFACES", 1)
    found = Samples(api.call("GET", "/metrics").text)
    assert found.by("interface", "trainyard_interface_unseen") == {"eth0": 1}


def test_another_amount_is_the_same_problem_to_those_who_follow_events(api: Served) -> None:
    put(api, "a")
    report(api, ETH0_UNSEEN)
    before = problems(api)
    report(api, ETH0_UNSEEN | {"unseen_sent_rate": 4e9})
    assert before != problems(api)
    assert list(problem_data(before, problems(api))) == []


@pytest.mark.parametrize(
    ("interfaces", "field"),
    [
        ([ETH0 | {"interface": ""}], "interfaces.0.interface"),
        ([ETH0 | {"interface": "eth0\x1b[31m"}], "interfaces.0.interface"),
        ([ETH0 | {"kind": "serial"}], "interfaces.0.kind"),
        ([ETH0 | {"unseen_sent_rate": -1.0}], "interfaces.0.unseen_sent_rate"),
        ([ETH0 | {"interface": f"eth{number}"} for number in range(65)], "interfaces"),
        ([ETH0, ETH0], None),
    ],
    ids=["no name", "a control character", "another kind", "below zero", "too many", "twice"],
)
def test_what_an_agent_says_is_checked(api: Served, interfaces: list[Any], field: str | None) -> None:
    answer = api.call("POST", "/v1/hosts/h1/reports", batch(interfaces=interfaces))
    assert_problem(answer, 422, "an interface is there twice" if field is None else field.partition(".")[0], field)


def test_a_tenant_reads_no_name_of_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    yard = RolesYard(tmp_path_factory.mktemp("unseen"))
    yard.start()
    try:
        for name, port, user in (("vision-1", 5000, "ann"), ("secret", 5001, "cem")):
            assert yard.call("PUT", f"/v1/jobs/{name}", spec(port, user=user)).ok
        assert yard.by("h1", "POST", "/v1/hosts/h1/reports", batch(interfaces=[ETH0_UNSEEN])).ok
        path = "/v1/jobs/vision-1/explain"
        wait_until(lambda: yard.by("vision", "GET", path).ok, what="a plan with the job")
        for answer in (yard.by("vision", "GET", path), yard.by("vision", "GET", "/v1/jobs")):
            assert "of this job or the other one there" in answer.text
            assert "secret" not in answer.text
    finally:
        yard.stop()
