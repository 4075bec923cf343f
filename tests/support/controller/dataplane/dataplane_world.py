"""A dataplane with quick settings, switches in memory for it, and the rules that a test expects in their tables."""

from __future__ import annotations

from typing import Any

from ryu.lib import hub

from controller.dataplane import openflow
from controller.dataplane.plane import Dataplane
from controller.dataplane.values import Settings
from controller.model import Flow, Host, Job, Snapshot, Switch
from controller.rules.compiler import compile_rules
from controller.rules.rule import Rule
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath, as_read

HOSTS = {f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}") for n in range(1, 5)}


def rules_for(classes: dict[str, int], *switches: int) -> frozenset[Rule]:
    jobs = tuple(Job(name, flows=(Flow(name, "h1", "h2", dst_port=ord(name)),)) for name in classes)
    known = tuple(Switch(dpid) for dpid in switches or (1,))
    shot = Snapshot(0.0, HOSTS, jobs, switches=known, has_places=False)
    return compile_rules(shot, classes, mode="classified", forwarding="normal")


def base(switch: Switch) -> frozenset[Rule]:
    return rules_for({}, switch.dpid)


def make_plane(**settings: Any) -> Dataplane:
    quick = {
        "queues": "existing",
        "answer_seconds": 0.2,
        "retry_seconds": 0.05,
        "audit_seconds": 60.0,
        "queue_seconds": 60.0,
    }
    return Dataplane(Settings(**(quick | settings)), base)


def connect(plane: Dataplane, dpid: int = 1, behaviour: Behaviour | None = None, **more: Any) -> FakeDatapath:
    switch = FakeDatapath(dpid, plane.deliver, behaviour or Behaviour(), **more)
    plane.connected(switch)
    return switch


def ready(plane: Dataplane, *dpids: int) -> None:
    wait_until(lambda: tuple(s.dpid for s in plane.switches()) == (dpids or (1,)), sleep=hub.sleep)


def held_rules(switch: FakeDatapath) -> frozenset[tuple[Any, ...]]:
    return frozenset((*key, m.cookie & 0xFFFFFFFF) for key, m in switch.table.items() if not m.hard_timeout)


def wanted_rules(rules: frozenset[Rule], dpid: int = 1) -> frozenset[tuple[Any, ...]]:
    switch = FakeDatapath(dpid, lambda _: None)
    made = [as_read(switch, openflow.add(switch, rule, 0)) for rule in rules if rule.switch == dpid]
    return frozenset((m.table_id, m.priority, tuple(sorted(m.match.items())), m.cookie & 0xFFFFFFFF) for m in made)


def reason(plane: Dataplane, switch: FakeDatapath) -> str:
    """Returns why the switch is not ready, once the dataplane has come to a conclusion."""

    def known_reason() -> str | None:
        status = next(status for status in plane.status() if status.dpid == switch.id)
        return status.reason if status.reason != "being set up" else None

    return str(wait_until(known_reason, sleep=hub.sleep))


def reason_of(plane: Dataplane, said: str) -> str:
    return str(
        wait_until(lambda: said in (plane.status()[0].reason or "") and plane.status()[0].reason, sleep=hub.sleep)
    )
