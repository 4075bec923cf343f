"""Marks of traffic that is not TCP in a host's plan."""

from __future__ import annotations

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.loop.host_plans import HostPlans
from controller.rules.marking import AnyMark, FlowMark, PortMarks
from controller.wire import HostPlan

TCP = FlowMark("a", 1, 51, None, "10.0.0.2", 5000)
UDP = FlowMark("a", 1, 51, None, "10.0.0.2", 5000, "udp")
IPV6 = FlowMark("a", 1, 51, None, "fd00::2", 5000, "udp")
ANY = FlowMark("a", 1, 51, None, "10.0.0.2", None, "any")
ENDS = (("10.0.0.2", 6000), ("10.0.0.3", 6000))


def plans(*marks: AnyMark, remembered: HostPlans | None = None) -> HostPlans:
    config = Config.model_validate({"hosts": [{"name": "h1", "address": "10.0.0.1"}]})
    made = HostPlans(CurrentSettings(config), remembered.record() if remembered is not None else {})
    made.update("fifo", {"h1": marks})
    return made


def plan(*marks: AnyMark) -> HostPlan:
    made, _ = plans(*marks).get("h1")
    assert made is not None
    return made


def test_they_are_behind_those_of_tcp_and_come_whole_to_the_agent() -> None:
    made = plan(UDP, TCP, PortMarks("a", 1, 51, ENDS, "udp"), ANY)
    assert [mark.remote_port for mark in made.marks] == [5000]
    assert [(mark.protocol, mark.remote, mark.remote_port) for mark in made.protocol_marks] == [
        ("udp", "10.0.0.2", 5000), ("udp", "10.0.0.2", 6000), ("udp", "10.0.0.3", 6000), ("any", "10.0.0.2", None)
    ]  # fmt: skip
    assert made.all_marks == (*made.marks, *made.protocol_marks)
    assert HostPlan.model_validate_json(made.model_dump_json(exclude=made.as_absent())) == made


def test_a_plan_without_them_is_one_for_agents_of_earlier_versions() -> None:
    made = plan(TCP)
    assert "protocol" not in made.model_dump_json(exclude=made.as_absent())
    mixed = plan(TCP, UDP, IPV6)
    assert mixed.over_ipv4().protocol_marks == plan(TCP, UDP).protocol_marks


def test_another_protocol_is_another_plan_and_the_same_one_is_none() -> None:
    before = plans(TCP, PortMarks("a", 1, 51, ENDS))
    for marks, epoch in (((TCP, PortMarks("a", 1, 51, ENDS)), 1), ((UDP, PortMarks("a", 1, 51, ENDS)), 2),
                         ((TCP, PortMarks("a", 1, 51, ENDS, "udp")), 2)):  # fmt: skip
        after, _ = plans(*marks, remembered=before).get("h1")
        assert after is not None and after.epoch == epoch, marks
