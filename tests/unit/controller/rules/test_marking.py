from __future__ import annotations

from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.loop.host_plans import as_mark
from controller.model import Flow, Host, Job, Listeners, Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.marking import FlowMark, marks
from tests.support.controller.dataplane.fake_switch import FakeSwitch, Packet

HOSTS = {f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}") for n in range(1, 5)}


def snapshot(*jobs: Job) -> Snapshot:
    return Snapshot(0.0, HOSTS, jobs, switches=(Switch(1),), has_places=False)


def first_match(marked: tuple[FlowMark, ...], packet: Packet) -> int:
    """The DSCP that a host's marks give a packet, the first that fits deciding."""
    for mark in marked:
        if (
            mark.remote == packet.ipv4_dst
            and mark.local_port in (None, packet.tcp_src)
            and mark.remote_port in (None, packet.tcp_dst)
        ):
            return mark.dscp
    return 0


def test_each_host_marks_what_it_sends() -> None:
    flows = (Flow("a", "h1", "h2", dst_port=5000), Flow("a", "h2", "h1", src_port=5000))
    marked = marks(snapshot(Job("a", flows=flows)), {"a": 2})
    assert marked == {
        "h1": (FlowMark("a", 2, POOL_2.classes[2], None, "10.0.0.2", 5000),),
        "h2": (FlowMark("a", 2, POOL_2.classes[2], 5000, "10.0.0.1", None),),
    }


def test_a_mark_is_one_on_the_wire() -> None:
    flows = (Flow("a", "h1", "h2", dst_port=5000), Flow("a", "h1", "h3", protocol="rocev2"))
    tcp, udp = marks(snapshot(Job("a", flows=flows)), {"a": 0})["h1"]
    assert as_mark(tcp).model_dump() | {"protocol": "tcp"} == asdict(tcp)
    assert as_mark(udp).model_dump() == asdict(udp)


def test_marks_of_jobs_that_have_not_changed_are_the_same_objects() -> None:
    def job(name: str, port: int) -> Job:
        ports = Listeners((("h3", port), ("h3", 7000)), ("h3", "h4"))
        return Job(name, flows=(Flow(name, "h1", "h2", dst_port=port),), listeners=ports)

    jobs = job("a", 5000), job("b", 6000)
    before, after = marks(snapshot(*jobs), {"a": 0, "b": 1}), marks(snapshot(*jobs), {"a": 0, "b": 2})
    assert before != after
    kept = [mark for marked in before.values() for mark in marked if mark.job == "a"]
    again = [mark for marked in after.values() for mark in marked if mark.job == "a"]
    assert [*map(id, kept)] == [*map(id, again)]
    back = marks(snapshot(*jobs), {"a": 0, "b": 1})
    assert back == before
    for first, second in zip(before.values(), back.values(), strict=True):
        assert [*map(id, first)] == [*map(id, second)], "also those of a job that gets a port which another one has"
    dscps = {mark.dscp for marked in marks(snapshot(*jobs), {"a": 3, "b": 1}).values() for mark in marked}
    assert dscps == {POOL_2.classes[3], POOL_2.classes[1]}


def test_a_job_without_a_class_is_not_marked() -> None:
    assert marks(snapshot(Job("a", flows=(Flow("a", "h1", "h2", dst_port=5000),))), {}) == {}


PORTS = st.one_of(st.none(), st.integers(1, 3))
FLOWS = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4), PORTS, PORTS), max_size=8)


@settings(max_examples=150, deadline=None)
@given(st.lists(FLOWS, max_size=4))
def test_hosts_mark_what_the_switch_would(drawn: list[list[tuple[int, int, int | None, int | None]]]) -> None:
    """Both ends of a link must serve a packet in the same class, whichever flows overlap."""
    jobs = tuple(
        Job(f"j{i}", flows=tuple(Flow(f"j{i}", f"h{s}", f"h{d}", sp, dp) for s, d, sp, dp in flows))
        for i, flows in enumerate(drawn)
    )
    classes = {job.id: i for i, job in enumerate(jobs)}
    shot = snapshot(*jobs)
    marked = marks(shot, classes)
    switch = FakeSwitch(1, compile_rules(shot, classes, mode="classified", forwarding="normal"))
    for src in range(1, 5):
        for dst in range(1, 5):
            for sp in range(1, 4):
                for dp in range(1, 4):
                    packet = Packet(ipv4_src=f"10.0.0.{src}", ipv4_dst=f"10.0.0.{dst}", tcp_src=sp, tcp_dst=dp)
                    verdict = switch.receive(packet, src)
                    assert first_match(marked.get(f"h{src}", ()), packet) == verdict.packet.ip_dscp
