"""Hosts with several interfaces, by a controller in this process: what agents, operators and the console are told."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from controller.api.live.facts import host_facts
from controller.api.live.sources import Sources
from controller.code_points import POOL_2
from controller.pieces import whole
from controller.wire import EVERY_ADDRESS, HostEvent, HostList, HostPlan, Network, Peers, Status
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.served import Served, served

HOSTS: list[dict[str, Any]] = [
    {
        "name": "gpu1",
        "interfaces": [
            {
                "name": "eth0",
                "address": "10.0.0.1",
                "addresses": ["fd00::1"],
                "switch": 1,
                "port": 1,
                "egress_bps": 4e9,
            },
            {"name": "eth1", "address": "10.1.0.1", "switch": 2, "port": 1, "mac": "02:00:00:00:00:01"},
        ],
    },
    {"name": "store", "address": "10.0.0.9", "addresses": ["fd00::9"], "switch": 1, "port": 9},
]
PREFER = {"Prefer": f"respond-async, {EVERY_ADDRESS}"}


@pytest.fixture(scope="module")
def api() -> Iterator[Served]:
    with served(hosts=HOSTS) as there:
        yield there


def test_a_host_is_listed_once_with_its_links(api: Served) -> None:
    gpu1, store = HostList.model_validate(api.call("GET", "/v1/hosts").json()).hosts
    assert gpu1.name == "gpu1" and gpu1.addresses == ("10.0.0.1", "fd00::1", "10.1.0.1")
    assert (gpu1.egress_bps, gpu1.ingress_bps, gpu1.switch, gpu1.port, gpu1.mac) == (5e9, 2e9, None, None, None)
    assert [(link.interface, link.switch, link.port, link.egress_bps) for link in gpu1.links] == [
        ("eth0", f"{1:016x}", 1, 4e9),
        ("eth1", f"{2:016x}", 1, 1e9),
    ]
    assert gpu1.links[1].mac == "02:00:00:00:00:01" and gpu1.found_by == "settings"
    assert store.links == () and store.port == 9 and store.addresses == ("10.0.0.9", "fd00::9")
    status = Status.model_validate(api.call("GET", "/v1/status").json())
    assert [(host.name, host.address) for host in status.hosts] == [("gpu1", "10.0.0.1"), ("store", "10.0.0.9")]


def test_the_network_has_a_link_for_each_interface(api: Served) -> None:
    network = Network.model_validate(api.call("GET", "/v1/network").json())
    assert [host.name for host in network.hosts] == ["gpu1", "store"]
    assert [(link.a.node, link.a.interface, link.b.node[-1]) for link in network.links] == [
        ("gpu1", "eth0", "1"), ("gpu1", "eth1", "2"), ("store", None, "1")
    ]  # fmt: skip


def test_a_plan_is_of_a_host_and_has_a_tree_for_each_interface(api: Served) -> None:
    answer = api.call("GET", "/v1/hosts/gpu1/plan")
    plan = HostPlan.model_validate(answer.json())
    assert plan.host == "gpu1" and plan.egress_bps == 5e9
    assert [(each.name, each.egress_bps) for each in plan.interfaces] == [("eth0", 4e9), ("eth1", 1e9)]
    assert plan.code_points.classes == POOL_2.classes
    alone = api.call("GET", "/v1/hosts/store/plan").json()
    assert "interfaces" not in alone, "agents of earlier versions know no such field"
    assert api.call("GET", "/v1/hosts/gpu1%2Feth0/plan").status_code == 404


def test_an_earlier_agent_is_told_what_it_understands(api: Served) -> None:
    answer = api.call("GET", "/v1/hosts/gpu1/peers")
    assert answer.json() == {"addresses": {"10.0.0.1": "gpu1", "10.1.0.1": "gpu1", "10.0.0.9": "store"}}


def test_an_agent_that_prefers_it_is_told_all(api: Served) -> None:
    answer = api.call("GET", "/v1/hosts/gpu1/peers", headers=PREFER)
    peers = Peers.model_validate(answer.json())
    assert peers.addresses == {
        "10.0.0.1": "gpu1", "fd00::1": "gpu1", "10.1.0.1": "gpu1", "10.0.0.9": "store", "fd00::9": "store"
    }  # fmt: skip
    assert peers.interfaces == {"10.0.0.1": "eth0", "fd00::1": "eth0", "10.1.0.1": "eth1"}
    tag = {"If-None-Match": answer.headers["ETag"]}
    assert api.call("GET", "/v1/hosts/gpu1/peers", headers=PREFER | tag).status_code == 304
    assert api.call("GET", "/v1/hosts/gpu1/peers", headers=tag).status_code == 200, "another answer has another tag"


@pytest.mark.parametrize("path", ["plan", "peers"])
def test_the_two_forms_of_an_answer_have_two_tags(api: Served, path: str) -> None:
    answers = [api.call("GET", f"/v1/hosts/gpu1/{path}", headers=headers) for headers in (PREFER, {})]
    every, plain = ({"If-None-Match": answer.headers["ETag"]} for answer in answers)
    assert every != plain and {answer.headers["Vary"] for answer in answers} == {"Prefer"}
    asked = [PREFER | every, plain, PREFER | plain, every]
    again = [api.call("GET", f"/v1/hosts/gpu1/{path}", headers=headers) for headers in asked]
    assert [answer.status_code for answer in again] == [304, 304, 200, 200]
    assert {answer.headers["Vary"] for answer in again} == {"Prefer"}


def test_events_tell_of_hosts_with_their_links(api: Served) -> None:
    facts = whole(Sources(api.services, lambda _services: ())._present_hosts())
    gpu1, store = (HostEvent.model_validate(host_facts(name, state)) for name, state in facts.items())
    assert (gpu1.name, gpu1.egress_bps, gpu1.port) == ("gpu1", 5e9, None)
    assert [(link.interface, link.switch, link.port) for link in gpu1.links] == [
        ("eth0", f"{1:016x}", 1), ("eth1", f"{2:016x}", 1)
    ]  # fmt: skip
    assert (store.name, store.port, store.links) == ("store", 9, ())
    assert "links" not in host_facts("store", facts["store"])


def explained(api: Served) -> Any:
    return api.call("GET", "/v1/jobs/a/explain").json()


def test_a_job_runs_on_hosts_and_is_ordered_by_interface(api: Served) -> None:
    spec = {
        "tasks": [{"role": "ps", "host": "gpu1", "port": 5000}, {"role": "worker", "host": "store"}],
        "demand": [{"src": "gpu1", "dst": "store", "bytes": 5e8}],
    }
    assert api.call("PUT", "/v1/jobs/a", spec).status_code == 201
    wait_until(lambda: api.call("GET", "/v1/jobs/a/explain").status_code == 200, what="a plan with the job")
    ports = [(wait["port"], round(wait["own_seconds_per_iteration"], 9)) for wait in explained(api)["ports"]]
    assert sorted(ports) == [("gpu1/eth0 egress", 0.8), ("gpu1/eth1 egress", 0.8), ("store ingress", 4.0)]
    marks = HostPlan.model_validate(api.call("GET", "/v1/hosts/store/plan").json()).marks
    assert sorted(mark.remote for mark in marks if mark.remote is not None) == ["10.0.0.1", "10.1.0.1"]
    refused = api.call("PUT", "/v1/jobs/b", {"tasks": [{"role": "ps", "host": "gpu1/eth0", "port": 1}]})
    assert refused.status_code == 422
