"""From settings to the plan of one switch: its ports, and what an operator is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.switch_config.from_settings import static_plan
from controller.switch_config.plan import PlanError, StaticPlan
from tests.support.controller.settings_file import load

ONE = """
hosts:
  - {name: alpha, address: 10.0.0.1, ingress_bps: 25e9, switch: "0x1", port: 4}
  - {name: beta, address: 10.0.0.2, switch: "0x1", port: 2}
"""
TWO = """
hosts:
  - name: alpha
    interfaces:
      - {name: eth0, address: 10.0.0.1, ingress_bps: 25e9, switch: "0x1", port: 4}
      - {name: eth1, address: 10.0.1.1, ingress_bps: 25e9, switch: "0x2", port: 4}
links:
  - {a: "0x1", a_port: 9, b: "0x2", b_port: 8, rate_bps: 100e9}
  - {a: "0x2", a_port: 7, b: "0x1", b_port: 6}
untrusted_hosts: [alpha]
"""


def planned(tmp_path: Path, text: str, dpid: int | None = None, names: dict[int, str] | None = None) -> StaticPlan:
    return static_plan(load(tmp_path, text), dpid, names or {}, "p{}".format)


def ports(plan: StaticPlan) -> list[tuple[int, str, str, float, bool]]:
    return [(port.number, port.name, port.behind, port.rate_bps, port.is_trusted) for port in plan.ports]


def test_the_only_switch_needs_no_name_and_its_ports_are_in_order(tmp_path: Path) -> None:
    assert ports(planned(tmp_path, ONE)) == [
        (2, "p2", "host beta", 1e9, True),
        (4, "p4", "host alpha", 25e9, True),
    ]


def test_links_have_a_port_at_both_ends_and_an_untrusted_hosts_interfaces_are_not_believed(tmp_path: Path) -> None:
    assert ports(planned(tmp_path, TWO, 1)) == [
        (4, "p4", "host alpha/eth0", 25e9, False),
        (6, "p6", "switch 0x2", 1e9, True),
        (9, "p9", "switch 0x2", 100e9, True),
    ]
    assert [row[:3] for row in ports(planned(tmp_path, TWO, 2))] == [
        (4, "p4", "host alpha/eth1"),
        (7, "p7", "switch 0x1"),
        (8, "p8", "switch 0x1"),
    ]


def test_a_port_has_the_name_that_it_is_given(tmp_path: Path) -> None:
    plan = planned(tmp_path, ONE, names={4: "Ethernet48"})
    assert [port.name for port in plan.ports] == ["p2", "Ethernet48"]
    assert "--port N=NAME" in " ".join(plan.notes)
    assert "--port" not in " ".join(planned(tmp_path, ONE, names={2: "a", 4: "b"}).notes)


@pytest.mark.parametrize(
    ("text", "dpid", "names", "sentence"),
    [
        (TWO, None, {}, "the settings have several switches; choose one by --switch: 0x1, 0x2"),
        (TWO, 3, {}, "--switch 0x3: the settings have no such switch; they have: 0x1, 0x2"),
        ("", 3, {}, "--switch 0x3: the settings have no such switch; they have: none"),
        (ONE, None, {5: "x"}, "--port 5: the switch has no such port; it has: 2, 4"),
    ],
)
def test_what_the_settings_do_not_have_is_refused(
    tmp_path: Path, text: str, dpid: int | None, names: dict[int, str], sentence: str
) -> None:
    with pytest.raises(PlanError) as refused:
        planned(tmp_path, text, dpid, names)
    assert str(refused.value) == sentence


def test_without_ports_one_stands_for_each(tmp_path: Path) -> None:
    plan = planned(tmp_path, "")
    assert ports(plan) == [(1, "p1", "any host", 1e9, True)]
    assert "stands for each" in plan.notes[0]


@pytest.mark.parametrize(
    ("text", "dpid", "note"),
    [
        (
            "hosts: [{name: alpha, address: 10.0.0.1}, {name: beta, address: 10.0.0.2}]",
            None,
            "where alpha (and 1 more)",
        ),
        ("enforce: [switch]", None, "no host marks packets"),
        ("dscp: class-selectors", None, "other programs use DSCP 8, 16, 24, 32, 40, 48, 56, too"),
        (TWO, 2, "the settings name no rate_bps for a link here"),
    ],
)
def test_an_operator_is_told_what_the_settings_leave_open(
    tmp_path: Path, text: str, dpid: int | None, note: str
) -> None:
    assert any(each.startswith(note) for each in planned(tmp_path, text, dpid).notes)


def test_only_the_preset_dcb_has_a_lossless_queue(tmp_path: Path) -> None:
    lossless = planned(tmp_path, "dscp: dcb").lossless
    assert lossless is not None
    assert (lossless.number, lossless.dscps) == (3, (26,))
    assert [planned(tmp_path, f"dscp: {name}").lossless for name in ("pool-2", "class-selectors")] == [None, None]


def test_floors_and_the_number_of_classes_are_those_of_the_settings(tmp_path: Path) -> None:
    plan = planned(tmp_path, "classes: 3\nfloors: {job_class: 0.05, other: 0.2}")
    assert [(queue.number, queue.floor) for queue in plan.queues] == [(7, 0.05), (6, 0.05), (5, 0.05), (0, 0.2)]
