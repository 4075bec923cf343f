"""Switches with a configuration of their own: what they are given, and that nothing of it stays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from controller.code_points import POOL_2
from topologies import limits, tools
from topologies.lab import own_switches
from topologies.lab.own_switches import rules, served
from topologies.lab.results import Served


class Network:
    bridges = ("s1", "s2")
    dscp = "pool-2"

    def port_rates(self) -> dict[str, float]:
        return {"s1-eth1": 1e8}


@pytest.fixture
def did(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    done: list[tuple[Any, ...]] = []

    def run(command: Sequence[str], *, lines: Sequence[str] = ()) -> None:
        done.append((command[3], command[4], len(lines)))

    monkeypatch.setattr(tools, "run", run)
    monkeypatch.setattr(limits, "make_queues", lambda rates, classes: done.append(("queues", dict(rates), classes)))
    monkeypatch.setattr(limits, "limit_ports", lambda rates: done.append(("limit", dict(rates))))
    monkeypatch.setattr(limits, "collect_rows", lambda: done.append(("collect",)))
    return done


def test_a_plain_switch_learns_and_looks_at_nothing() -> None:
    assert rules(None) == ("table=0,priority=0,actions=NORMAL",)


def test_a_switch_that_serves_by_dscp_has_a_queue_for_each_class_in_both_families() -> None:
    text = "\n".join(rules(POOL_2.first(2)))
    for family in ("ip", "ipv6"):
        assert f"{family},ip_dscp=59,actions=set_queue:1,NORMAL" in text
        assert f"{family},ip_dscp=51,actions=set_queue:2,NORMAL" in text
        assert f"{family},ip_dscp=63,actions=set_queue:1,NORMAL" in text, "packets without data go first"
    assert "ip_dscp=43" not in text
    assert "arp,actions=set_queue:1,NORMAL" in text
    assert rules(POOL_2)[0] == "table=0,priority=0,actions=NORMAL"


@pytest.mark.parametrize(
    ("by", "first", "count"),
    [("plain", ("limit", {"s1-eth1": 1e8}), 1), ("dscp", ("queues", {"s1-eth1": 1e8}, 3), len(rules(POOL_2.first(3))))],
)
def test_afterwards_nothing_of_it_is_left(did: list[tuple[Any, ...]], by: Served, first: Any, count: int) -> None:
    cleared = [("del-flows", "s1", 0), ("del-flows", "s2", 0), ("limit", {"s1-eth1": 1e8}), ("collect",)]
    with pytest.raises(RuntimeError, match="the arm failed"), served(Network(), by, 3):
        assert did == [
            first,
            ("collect",),
            ("del-flows", "s1", 0),
            ("add-flows", "s1", count),
            ("del-flows", "s2", 0),
            ("add-flows", "s2", count),
        ]
        did.clear()
        raise RuntimeError("the arm failed")
    assert did == cleared


def test_a_switch_of_the_controller_is_left_to_it(did: list[tuple[Any, ...]]) -> None:
    with own_switches.served(Network(), "controller", 7):
        pass
    assert did == []
