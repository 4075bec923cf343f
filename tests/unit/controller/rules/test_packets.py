"""The table of packets through a real Open vSwitch: each case's queue and DSCP where switches enforce.

The hosts' side is in ``tests/host/test_packets_host.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from inspect import signature
from pathlib import Path

import pytest

from controller.model import Host, Switch
from controller.rules.compiler import compile_rules
from controller.rules.pairs.places import hosts_of
from docs.generate.packets import HOSTS
from evaluation.bench.support.openflow.openvswitch_process import DPID, OpenVSwitch
from tests.support.controller.dataplane.traced_switch import TracedSwitch
from tests.support.packets.expected import Case, Outcome, all_cases, packets
from tests.support.packets.switches import Switches, switches
from tests.support.packets.world import BETWEEN, CLASSES, DPIDS, ENDS, snapshot

CASES = tuple(all_cases())
GROUP_BIT = 1
"""In the first byte of a MAC address: it is that of a group (IEEE 802)."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Switches]:
    with switches(tmp_path_factory.mktemp("switches")) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_packet_gets_its_place_at_the_switch(made: Switches, case: Case) -> None:
    assert {name: said for name in DPIDS if (said := difference(made, case, name))} == {}


def difference(made: Switches, case: Case, combination: str) -> str | None:
    """Returns what the table says and what the switch does, or None where they are the same."""
    tos = case.arriving(combination)
    done = made.trace(combination, case.frame(tos), case.pair.src.port, tos)
    wanted = case.outcome(combination)
    return None if Outcome(*done) == wanted else f"{done} instead of {wanted}"


@pytest.mark.parametrize("combination", ["both-flows", "both-classes", "both-dscp"])
def test_real_packets_are_treated_as_the_trace_says_and_come_out_whole(made: Switches, combination: str) -> None:
    """Of each frame nothing but its DSCP is changed, and the checksum that covers it."""
    kinds = {(case.row.packet, case.family, case.row.tags, case.row.dscp): case for case in CASES}
    for case in kinds.values():
        tos = case.arriving(combination)
        frame, ports = case.frame(tos), (case.pair.src.port, case.pair.dst.port)
        traced = made.trace(combination, frame, ports[0], tos)
        assert made.send(combination, frame, ports, tos) == (traced, [case.frame(traced.tos)] * 2), case.name


def test_computed_paths_lead_each_frame_to_its_host_and_none_to_a_group(tmp_path: Path) -> None:
    """A request for a MAC address is sent to a group, and goes to the host that it asks for."""
    rules = compile_rules(snapshot((Switch(DPID),), hosts_mark=True), CLASSES, mode="classified", forwarding="paths")
    with OpenVSwitch(tmp_path / "ovs") as bridge:
        bridge.vsctl("set", "open_vswitch", ".", "other_config:vlan-limit=2")
        switch = TracedSwitch(bridge)
        assert switch.install(rules) == []
        for case in {(case.row.packet, case.row.between, case.family): case for case in CASES}.values():
            frame = case.frame(case.sent())
            is_to_host = not frame[0] & GROUP_BIT or case.row.packet in {"arp-request", "neighbour-solicitation"}
            ports = switch.trace(f"in_port={case.pair.src.port} {frame.hex()}").ports
            assert ports == ((case.pair.dst.port,) if is_to_host else ()), case.name
        switch.close()


def test_nothing_between_two_hosts_that_have_jobs_is_in_queue_0() -> None:
    ports = {ENDS[host].port for job in snapshot((), hosts_mark=False).jobs for host in hosts_of(job)}
    between = [case for case in CASES if {case.pair.src.port, case.pair.dst.port} <= ports]
    assert {case.pair for case in between} > {case.pair for case in CASES if case.pair.job is not None}
    for case in between:
        assert all(case.outcome(name).queue != 0 for name in DPIDS), case.name


def test_the_ecn_bits_and_other_dscps_are_never_touched() -> None:
    for case in CASES:
        for name in (HOSTS, *DPIDS):
            sent, tos = case.sent(), case.outcome(name).tos
            assert (sent is None) == (tos is None)
            if sent is not None and tos is not None:
                assert sent & 3 == tos & 3
                is_cleared = case.row.place.startswith(("claimed", "own-untrusted"))
                assert tos == sent or sent >> 2 == 0 or "tcp" in case.row.packet or is_cleared


def test_the_table_is_whole() -> None:
    kinds = [row.kind for row in packets().rows]
    assert len(set(kinds)) == len(kinds) >= 40
    assert {row.between for row in packets().rows} == set(BETWEEN) == set(packets().between)


def test_the_table_is_of_all_that_rules_may_depend_on() -> None:
    """What is new, such as a further address of a host, must be in tests/support/packets/world.py, too."""
    of_host = {"name", "ingress_bps", "egress_bps", "address", "more_addresses", "mac", "switch", "switch_port",
               "interface"}  # fmt: skip
    of_compiler = {"snapshot", "classes", "mode", "forwarding", "links", "control", "announcements"}
    assert {field.name for field in fields(Host)} == of_host
    assert set(signature(compile_rules).parameters) == of_compiler
