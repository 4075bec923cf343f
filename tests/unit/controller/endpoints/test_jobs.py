"""Jobs on servers with several interfaces, as loads, rules and marks see them."""

from __future__ import annotations

import pytest

from controller.code_points import POOL_2
from controller.endpoints import jobs as module
from controller.endpoints.jobs import JobsOnInterfaces
from controller.model import Demand, Direction, Flow, Host, Job, Listeners, Port, Role, Snapshot, Switch, Task
from controller.ordering.loads import busiest_port, load_matrix
from controller.ordering.service import attained
from controller.rules.compiler import compile_rules
from controller.rules.marking import FlowMark, PortMarks, marks
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

PLAIN = {name: Host(name, address=f"10.0.0.{k}", switch=1, switch_port=k) for k, name in enumerate("ab", 1)}
RAILS = {
    f"{name}/r{rail}": Host(
        f"{name}/r{rail}", 1e9, 1e9, f"10.{rail}.0.{k}", 1, 2 * k + rail, interface=f"r{rail}"
    )
    for k, name in enumerate("abc", 1)
    for rail in (0, 1)
}  # fmt: skip
FLOWS = (Flow("j", "a", "b", dst_port=5000), Flow("j", "b", "a", src_port=5000))


def snapshot(*jobs: Job) -> Snapshot:
    return Snapshot(0.0, RAILS, jobs, switches=(Switch(1),))


def test_where_each_server_has_one_interface_all_stays_the_same_object() -> None:
    job = Job("j", (Demand("a", "b", 1.0),), flows=FLOWS)
    assert JobsOnInterfaces(PLAIN).of(job) is job


def test_a_job_is_put_on_interfaces_once() -> None:
    on_interfaces = JobsOnInterfaces(RAILS)
    job = Job("j", (Demand("a", "b", 2e9),), flows=FLOWS, tasks=(Task(Role.PS, "a", 5000),), found_on=frozenset({"a"}))
    put = on_interfaces.of(job)
    assert on_interfaces.of(job).demand is put.demand and on_interfaces.of(job).flows is put.flows
    assert put.demand == (Demand("a/r0", "b/r0", 1e9), Demand("a/r1", "b/r1", 1e9))
    assert put.tasks is job.tasks and put.found_on is job.found_on
    assert on_interfaces.of(Job("k", job.demand)).demand is put.demand, "the loads of a demand are remembered by it"
    assert on_interfaces.names(["a", "nobody"]) == {"a/r0", "a/r1"}


def test_each_interface_is_a_port_of_the_ordering() -> None:
    job = JobsOnInterfaces(RAILS).of(Job("j", (Demand("a", "b", 1e9 / 8), Demand("c", "b/r1", 1e9 / 8))))
    now = snapshot(job)
    port, seconds = busiest_port(job, now)
    assert (port, seconds) == (Port("b/r1", Direction.INGRESS), pytest.approx(1.5))
    assert load_matrix(now).bottlenecks() == pytest.approx([1.5])


def test_what_a_server_has_sent_is_of_the_interfaces_that_send() -> None:
    on_interfaces = JobsOnInterfaces(RAILS)
    job = on_interfaces.of(Job("j", (Demand("a/r1", "b/r1", 5.0),), sent_bytes={"a": 1e9, "c": 2e9, "gone": 1.0}))
    assert job.sent_bytes == {"a/r0": 0.0, "a/r1": 1e9, "c/r0": 1e9, "c/r1": 1e9, "gone": 1.0}
    assert attained(snapshot(job), load_matrix(snapshot(job)).bottlenecks()) == pytest.approx([8.0])


def test_a_declared_flow_may_use_any_two_interfaces_and_a_found_one_only_its_own() -> None:
    found = (Flow("j", "a/r0", "b/r1", 7, 8),)
    job = JobsOnInterfaces(RAILS).of(Job("j", flows=FLOWS[:1], found=found))
    assert {flow[1:3] for flow in job.flows} == {(f"a/r{i}", f"b/r{k}") for i in (0, 1) for k in (0, 1)}
    assert job.found == found


def test_a_job_with_very_many_flows_is_taken_to_keep_to_its_rails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_FLOWS", 7)
    job = JobsOnInterfaces(RAILS).of(Job("j", flows=FLOWS))
    assert {flow[1:3] for flow in job.flows} == {("a/r0", "b/r0"), ("a/r1", "b/r1"), ("b/r0", "a/r0"), ("b/r1", "a/r1")}


@pytest.mark.parametrize("rail", [0, 1])
@pytest.mark.parametrize("far", [0, 1])
def test_switches_serve_a_job_on_all_interfaces_and_believe_each_port_alone(rail: int, far: int) -> None:
    rules = compile_rules(
        snapshot(JobsOnInterfaces(RAILS).of(Job("j", flows=FLOWS))), {"j": 2}, mode="classified", forwarding="normal"
    )
    switch = FakeSwitch(1, rules)
    packet = Packet(ipv4_src=f"10.{rail}.0.1", ipv4_dst=f"10.{far}.0.2", tcp_src=9, tcp_dst=5000)
    assert switch.receive(packet, 2 + rail).service_class == 2
    assert switch.receive(packet, 3 - rail).service_class is None


def test_a_server_has_one_set_of_marks_for_all_its_interfaces() -> None:
    listeners = Listeners((("a", 6000),), ("a", "b", "c"))
    job = JobsOnInterfaces(RAILS).of(Job("j", flows=FLOWS, listeners=listeners, found_on=frozenset({"c"})))
    marked = marks(snapshot(job), {"j": 1})
    dscp = POOL_2.classes[1]
    to_all = PortMarks("j", 1, dscp, (("10.0.0.1", 6000), ("10.1.0.1", 6000)))
    assert marked == {
        "a": (
            FlowMark("j", 1, dscp, None, "10.0.0.2", 5000),
            FlowMark("j", 1, dscp, None, "10.1.0.2", 5000),
            to_all,
            FlowMark("j", 1, dscp, 6000, None, None),
        ),
        "b": (to_all, FlowMark("j", 1, dscp, 5000, "10.0.0.1", None), FlowMark("j", 1, dscp, 5000, "10.1.0.1", None)),
        "c": (FlowMark("j", 1, dscp, None, None, None), to_all),
    }
