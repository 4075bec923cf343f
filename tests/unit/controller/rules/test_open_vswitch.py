"""The rules in a real Open vSwitch: it takes them, tells them as they were sent, and does what they say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.code_points import POOL_2, code_points
from controller.dataplane.meters import own_limits
from controller.dataplane.peers.message_shapes import check_meters
from controller.model import Flow, Host, Job, Listeners, Snapshot, Switch
from controller.rules.compiler import Rule, compile_rules
from controller.rules.pipeline import Endpoint
from evaluation.bench.support.openflow.openvswitch_process import DPID, OpenVSwitch
from tests.support.controller.dataplane.traced_switch import TracedSwitch

LAST = 6
OTHER, FIRST = 0, 1
"""The queues of all other traffic and of class 0."""
HOSTS = {
    name: Host(name, address=address, switch=DPID, switch_port=port, mac=f"02:00:00:00:01:{i:02x}")
    for i, (name, address, port) in enumerate((
        ("h1", "10.0.0.1", 1), ("h2", "10.0.0.2", 2), ("h3", "10.0.0.3", 2), ("h4", "10.0.0.4", 3),
        ("g1", "fd00::1", 1), ("g2", "fd00::2", 2),
    ))
}  # fmt: skip
ROUTER, METER = 8, 0x7472
"""A port whose control traffic goes first, and its meter."""
FOUR = "dl_dst=02:00:00:00:00:02,{},nw_src=10.0.0.1,nw_dst=10.0.0.2"
SIX = "dl_dst=02:00:00:00:00:02,{},ipv6_src=fd00::1,ipv6_dst=fd00::2"


def rules(mode: str, forwarding: str) -> frozenset[Rule]:
    own = (3, 7) if mode == "dscp" else (None, None)
    beyond_tcp = (
        Flow("a", "g2", "g1", protocol="any"),
        Flow("a", "h2", "h1", protocol="rocev2"),
        Flow("a", "h2", "h1", src_port=7000, protocol="udp"),
    )
    flows = (Flow("a", "h1", "h2", dst_port=5000), Flow("a", "g1", "g2", dst_port=5000), *beyond_tcp)
    ports = Listeners((("h3", 7000),), ("h2", "h3"))
    a = Job("a", flows=flows, dscp=own[0])
    b = Job("b", listeners=ports, udp_listeners=ports, dscp=own[1])
    switch = Switch(DPID, inner_ports=frozenset({9}), trusted_ports=frozenset({1}), control_ports=((ROUTER, METER),))
    shot = Snapshot(0.0, HOSTS, (a, b), switches=(switch,), acknowledging=frozenset({"h1", "g1"}))
    if mode == "dscp":
        shot = replace(shot, code_points=code_points(POOL_2.classes, 63, jobs=(3, 7, 11)), is_lossless=True)
    return compile_rules(
        shot, {"a": 2, "b": 0}, mode=mode, forwarding=forwarding, control=[Endpoint("fd00::9", 80)], announcements=True
    )


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenVSwitch]:
    with OpenVSwitch(tmp_path_factory.mktemp("switch") / "ovs") as made:
        yield made


@pytest.fixture(scope="module")
def switch(bridge: OpenVSwitch) -> Iterator[TracedSwitch]:
    connection = TracedSwitch(bridge)
    add_meter(connection)
    assert connection.install(rules("classified", "paths")) == []
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("mode", "forwarding"), [("classified", "paths"), ("marked", "paths"), ("marked", "normal"), ("dscp", "paths")]
)
def test_every_rule_is_taken_and_told_as_it_was_sent(
    tmp_path_factory: pytest.TempPathFactory, mode: str, forwarding: str
) -> None:
    wanted = rules(mode, forwarding)
    with OpenVSwitch(tmp_path_factory.mktemp("another") / "ovs") as bridge:
        connection = TracedSwitch(bridge)
        add_meter(connection)
        assert connection.install(wanted) == []
        assert connection.held() == frozenset(rule._replace(job=None) for rule in wanted)
        connection.close()


def test_classes_have_the_queues_of_lossless_priorities(tmp_path_factory: pytest.TempPathFactory) -> None:
    jobs = (Job("a", flows=(Flow("a", "h1", "h2"),), dscp=3), Job("b", flows=(Flow("b", "h1", "h3"),), dscp=7))
    points = code_points(POOL_2.classes[:2], 63, jobs=(3, 7))
    shot = Snapshot(0.0, HOSTS, jobs, 2, switches=(Switch(DPID),), code_points=points, is_lossless=True)
    wanted = compile_rules(shot, {"a": 0, "b": 1}, mode="dscp", forwarding="normal")
    with OpenVSwitch(tmp_path_factory.mktemp("lossless") / "ovs") as bridge:
        connection = TracedSwitch(bridge, numbers=(4, 3))
        assert connection.install(wanted) == []
        assert connection.held() == frozenset(rule._replace(job=None) for rule in wanted)
        rocev2 = "in_port=1," + FOUR.format("udp") + ",udp_src=9,udp_dst=4791,nw_tos={}"
        assert [connection.trace(rocev2.format(dscp << 2)).queue for dscp in (3, 7, 48)] == [4, 3, None]
        connection.close()


def add_meter(switch: TracedSwitch) -> None:
    bands = [parser.OFPMeterBandDrop(1000, 0)]
    assert switch.ask(parser.OFPMeterMod(switch.datapath, ofp.OFPMC_ADD, ofp.OFPMF_KBPS, METER, bands)) == []


def dscp(service_class: int) -> int:
    return POOL_2.classes[service_class]


@pytest.mark.parametrize(
    ("packet", "queue", "written"),
    [
        (FOUR.format("tcp") + ",tcp_dst=5000", 3, dscp(2)),
        (FOUR.format("tcp") + ",tcp_dst=22", LAST + 1, dscp(LAST)),
        (FOUR.format("tcp") + ",nw_frag=first", 3, dscp(2)),
        (FOUR.format("tcp") + ",nw_frag=later", 3, dscp(2)),
        (FOUR.format("udp") + ",nw_frag=later", LAST + 1, dscp(LAST)),
        (FOUR.format("udp") + ",udp_dst=4791", 3, dscp(2)),
        (FOUR.format("udp") + ",udp_dst=4791,nw_tos=104", 3, None),
        (FOUR.format("udp") + ",udp_dst=4791,nw_tos=236", 3, dscp(2)),
        (FOUR.format("udp") + ",udp_dst=4789", 3, dscp(2)),
        (FOUR.format("ip") + ",nw_proto=47", 3, dscp(2)),
        (FOUR.format("sctp") + ",sctp_dst=9", LAST + 1, dscp(LAST)),
        (FOUR.format("icmp") + ",icmp_type=8", LAST + 1, dscp(LAST)),
        (FOUR.format("icmp") + ",icmp_type=3,icmp_code=4", FIRST, None),
        ("dl_vlan=7," + FOUR.format("udp") + ",udp_dst=4791", 3, dscp(2)),
        ("dl_vlan=7," + FOUR.format("tcp") + ",tcp_dst=5000", 3, dscp(2)),
        (SIX.format("tcp6") + ",tcp_dst=5000", 3, dscp(2)),
        (SIX.format("tcp6") + ",nw_frag=later", 3, dscp(2)),
        (SIX.format("udp6") + ",udp_dst=4791", 3, dscp(2)),
        (SIX.format("icmp6") + ",icmpv6_type=128", LAST + 1, dscp(LAST)),
        (SIX.format("icmp6") + ",icmpv6_type=2", FIRST, None),
        ("icmp6,ipv6_dst=ff02::1:ff00:2,icmpv6_type=135,nd_target=fd00::2", FIRST, None),
        ("arp,arp_tpa=10.0.0.2", FIRST, None),
        ("dl_type=0x8809,dl_dst=01:80:c2:00:00:02", FIRST, None),
        ("udp,nw_src=10.0.0.1,nw_dst=10.0.0.3,udp_dst=4791", LAST + 1, dscp(LAST)),
        ("udp,nw_src=10.0.0.1,nw_dst=10.0.0.4,udp_dst=4791", OTHER, None),
        ("udp,nw_src=10.0.0.3,nw_dst=10.0.0.2,udp_dst=4791", OTHER, None),
        ("udp,nw_src=10.0.0.1,nw_dst=10.0.0.4,udp_dst=99,nw_tos=236", OTHER, 0),
    ],
)
def test_what_becomes_of_a_packet(switch: TracedSwitch, packet: str, queue: int, written: int | None) -> None:
    traced = switch.trace(f"in_port=1,{packet}")
    assert (traced.queue, traced.dscp) == (queue, written)


@pytest.mark.parametrize("packet", ["arp,arp_tpa=10.0.0.2", "icmp6,icmpv6_type=135,nd_target=fd00::2"])
def test_a_request_for_a_mac_address_goes_to_the_host_alone(switch: TracedSwitch, packet: str) -> None:
    assert switch.trace(f"in_port=1,{packet}").ports == (2,)
    unknown = packet.replace("10.0.0.2", "10.0.0.77").replace("fd00::2", "fd00::77")
    assert switch.trace(f"in_port=1,{unknown}").ports == ()


@pytest.mark.parametrize(
    "packet",
    [
        # A host whose entry is no longer fresh is asked by its own address, from a link-local one (RFC 4861, 7.3.3).
        "dl_dst={mac},icmp6,ipv6_src=fe80::aa,ipv6_dst=fd00::2,icmpv6_type=135,nd_target=fd00::2",
        # And it answers to the link-local address, and asks there by itself.
        "dl_dst={mac},icmp6,ipv6_src=fd00::1,ipv6_dst=fe80::bb,icmpv6_type=136,nd_target=fd00::1",
        "dl_dst={mac},icmp6,ipv6_src=fe80::aa,ipv6_dst=fe80::bb,icmpv6_type=135,nd_target=fe80::bb",
        "icmp6,ipv6_src=fe80::aa,ipv6_dst=ff02::1:ff00:105,icmpv6_type=135,nd_target=fe80::ff:fe00:105",
        "dl_dst={mac},udp6,ipv6_src=fe80::aa,ipv6_dst=fe80::bb,udp_dst=4791",
        "dl_dst={mac},ip,nw_src=10.9.0.1,nw_dst=10.9.0.2",
        "dl_dst={mac},dl_type=0x8915",
        "dl_dst={mac},dl_vlan=7,dl_type=0x8915",
    ],
)
def test_what_no_address_of_the_settings_names_goes_by_the_mac_address(switch: TracedSwitch, packet: str) -> None:
    assert switch.trace(f"in_port=1,{packet.format(mac=HOSTS['g2'].mac)}").ports == (2,)
    unknown = packet.replace("fe80::ff:fe00:105", "fe80::77").replace("ipv6_dst=fd00::2", "ipv6_dst=fd00::77")
    unknown = unknown.replace("nd_target=fd00::2", "nd_target=fd00::77").format(mac="02:00:00:00:77:77")
    assert switch.trace(f"in_port=1,{unknown}").ports == (), "no host has these addresses"


def test_an_ip_address_goes_before_a_mac_address(switch: TracedSwitch) -> None:
    packet = f"in_port=1,dl_dst={HOSTS['h4'].mac},udp,nw_src=10.0.0.1,nw_dst=10.0.0.2"
    assert switch.trace(packet).ports == (2,)


@pytest.mark.parametrize(
    "packet",
    [
        "tcp,tcp_dst=179",
        "tcp6,tcp_src=179",
        "ip,nw_proto=89",
        "ipv6,nw_proto=89",
        *(f"udp,udp_dst={port}" for port in (3784, 3785, 4784, 319, 320)),
        "udp6,udp_dst=3784",
        "dl_type=0x88f7",
        "udp,udp_dst=4791,nw_tos=192",
        "dl_vlan=7,tcp,tcp_dst=179",
    ],
)
def test_control_traffic_goes_first_through_a_meter_from_the_named_port_alone(
    switch: TracedSwitch, packet: str
) -> None:
    traced = switch.trace(f"in_port={ROUTER},{packet}")
    assert (traced.queue, traced.meters) == (FIRST, (METER,))
    assert switch.trace(f"in_port=1,{packet}")[:3] == (OTHER, None, ())


def test_a_switch_tells_its_meters(switch: TracedSwitch) -> None:
    (reply,) = switch.ask(parser.OFPMeterConfigStatsRequest(switch.datapath, 0, ofp.OFPM_ALL))
    assert check_meters(bytes(reply.buf), 16) == []
    assert own_limits(reply.body) == {METER: 1000}


def test_two_vlan_tags_hide_a_flow_until_the_switch_may_look_behind_them(
    bridge: OpenVSwitch, switch: TracedSwitch
) -> None:
    ethernet = "02000000000202000000000188a80007810000080800"
    addresses = "0a0000010a000002"
    packet = ethernet + "4500002800004000400600" + "00" + addresses + "00091388" + "00" * 8 + "5010ffff" + "00" * 4
    assert switch.trace(f"in_port=1 {packet}").queue == OTHER
    bridge.vsctl("set", "open_vswitch", ".", "other_config:vlan-limit=2")
    assert switch.trace(f"in_port=1 {packet}").queue == 3


def test_the_ecn_bits_stay(switch: TracedSwitch) -> None:
    text = switch.text(f"in_port=1,{FOUR.format('tcp')},tcp_dst=5000,nw_tos=0,nw_ecn=3")
    assert "nw_ecn=3" in text.split("Final flow:")[1]
    assert f"nw_tos={dscp(2) << 2}" in text.split("Final flow:")[1]
