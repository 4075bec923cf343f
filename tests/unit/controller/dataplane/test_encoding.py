"""Rules as bytes are the very bytes that Ryu makes of the same fields, actions and instructions."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address
from itertools import chain
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from controller.dataplane import openflow
from controller.dataplane.encoding import PACKET_BYTES
from controller.dataplane.messages import Batch, FlowMod, InBundle
from controller.rules.rule import (
    Action,
    Match,
    Metered,
    Normal,
    Output,
    Rule,
    SetClass,
    SetDscp,
    SetMetadata,
    Table,
    ToController,
)

DATAPATH = ProtocolDesc(version=ofp.OFP_VERSION)
NUMBERS = (3, 5, 1)
BYTE, SHORT, LONG = (st.integers(0, (1 << bits) - 1) for bits in (8, 16, 32))
TWO_LONGS = st.integers(0, (1 << 64) - 1)
IPV4, IPV6 = LONG.map(lambda n: str(IPv4Address(n))), st.integers(0, (1 << 128) - 1).map(lambda n: str(IPv6Address(n)))
MAC = st.binary(min_size=6, max_size=6).map(lambda b: b.hex(":"))
MATCHES = st.builds(
    Match,
    in_port=st.none() | LONG,
    eth_type=st.none() | SHORT,
    ip_proto=st.none() | BYTE,
    ipv4_src=st.none() | IPV4,
    ipv4_dst=st.none() | IPV4,
    tcp_src=st.none() | SHORT,
    tcp_dst=st.none() | SHORT,
    ip_dscp=st.none() | st.integers(0, 63),
    arp_tpa=st.none() | IPV4,
    ipv6_src=st.none() | IPV6,
    ipv6_dst=st.none() | IPV6,
    udp_dst=st.none() | SHORT,
    metadata=st.none() | st.tuples(TWO_LONGS, TWO_LONGS),
    eth_dst=st.none() | MAC | st.tuples(MAC, MAC),
    icmpv4_type=st.none() | BYTE,
    icmpv6_type=st.none() | BYTE,
    ipv6_nd_target=st.none() | IPV6,
    eth_src=st.none() | MAC,
    icmpv6_code=st.none() | BYTE,
    udp_src=st.none() | SHORT,
)
CLASSES = st.none() | st.integers(0, len(NUMBERS) - 1)
IN_ACTIONS = st.lists(
    st.one_of(
        st.builds(SetClass, CLASSES),
        st.builds(SetDscp, st.integers(0, 63)),
        st.builds(Output, LONG),
        st.just(Normal()),
        st.just(ToController()),
    ),
    max_size=3,
)
ACTIONS = st.tuples(
    st.lists(st.builds(Metered, LONG), max_size=1),
    IN_ACTIONS,
    st.lists(st.builds(SetMetadata, TWO_LONGS, TWO_LONGS), max_size=1),
).map(lambda parts: tuple(chain.from_iterable(parts)))
RULES = st.builds(
    Rule, st.just(1), st.sampled_from(Table), SHORT, MATCHES, ACTIONS, st.none() | st.sampled_from(Table),
    st.none() | st.sampled_from(["a", "b"]),
)  # fmt: skip


def ryus_match(match: Match) -> Any:
    return parser.OFPMatch(**{name: value for name, value in match._asdict().items() if value is not None})


def ryus_action(action: Action, numbers: tuple[int, ...]) -> Any:
    match action:
        case SetClass(None):
            return parser.OFPActionSetQueue(0)
        case SetClass(int(k)):
            return parser.OFPActionSetQueue(numbers[k] if numbers else k + 1)
        case SetDscp(dscp):
            return parser.OFPActionSetField(ip_dscp=dscp)
        case Output(port):
            return parser.OFPActionOutput(port)
        case Normal():
            return parser.OFPActionOutput(ofp.OFPP_NORMAL)
        case _:
            return parser.OFPActionOutput(ofp.OFPP_CONTROLLER, PACKET_BYTES)


def ryus_instructions(rule: Rule, numbers: tuple[int, ...]) -> list[Any]:
    meters = [parser.OFPInstructionMeter(each.meter) for each in rule.actions if isinstance(each, Metered)]
    applied = [ryus_action(each, numbers) for each in rule.actions if not isinstance(each, Metered | SetMetadata)]
    notes = [
        parser.OFPInstructionWriteMetadata(each.value, each.mask)
        for each in rule.actions
        if isinstance(each, SetMetadata)
    ]
    actions = [parser.OFPInstructionActions(ofp.OFPIT_APPLY_ACTIONS, applied)] if applied else []
    goto = [parser.OFPInstructionGotoTable(rule.goto)] if rule.goto is not None else []
    return [*meters, *actions, *notes, *goto]


def ryus_add(rule: Rule, epoch: int, numbers: tuple[int, ...]) -> Any:
    return parser.OFPFlowMod(
        DATAPATH, cookie=openflow.cookie(rule.job, epoch), table_id=rule.table, command=ofp.OFPFC_ADD,
        priority=rule.priority, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
        flags=ofp.OFPFF_SEND_FLOW_REM if rule.job is None else 0,
        match=ryus_match(rule.match), instructions=ryus_instructions(rule, numbers),
    )  # fmt: skip


def ryus_delete(rule: Rule) -> Any:
    return parser.OFPFlowMod(
        DATAPATH, cookie=openflow.OWNER_COOKIE, cookie_mask=openflow.OWNER_MASK, table_id=rule.table,
        command=ofp.OFPFC_DELETE_STRICT, priority=rule.priority, out_port=ofp.OFPP_ANY, out_group=ofp.OFPG_ANY,
        match=ryus_match(rule.match),
    )  # fmt: skip


def sent(message: Any, xid: int = 7) -> bytes:
    message.set_xid(xid)
    message.serialize()
    return bytes(message.buf)


@given(RULES, st.integers(0, 70_000), st.sampled_from([(), NUMBERS]))
def test_rules_are_added_and_deleted_by_the_bytes_that_ryu_makes(
    rule: Rule, epoch: int, numbers: tuple[int, ...]
) -> None:
    assert sent(openflow.add(DATAPATH, rule, epoch, numbers)) == sent(ryus_add(rule, epoch, numbers))
    assert sent(openflow.delete(DATAPATH, rule)) == sent(ryus_delete(rule))


@given(RULES)
def test_in_a_bundle_both_messages_have_one_transaction_id(rule: Rule) -> None:
    ours = InBundle(DATAPATH, 9, 3, openflow.add(DATAPATH, rule, 1))
    assert sent(ours, 0xFFFF_FFFF) == sent(
        parser.ONFBundleAddMsg(DATAPATH, 9, 3, ryus_add(rule, 1, ()), []), 0xFFFF_FFFF
    )


def test_a_batch_is_its_messages_one_after_the_other() -> None:
    messages = [FlowMod(DATAPATH, b"12345678"), parser.OFPBarrierRequest(DATAPATH)]
    for xid, message in enumerate(messages, 5):
        message.set_xid(xid)
    batch = Batch(DATAPATH, messages)
    batch.serialize()
    assert bytes(batch.buf).hex() == "040e001000000005" + b"12345678".hex() + "0414000800000006"
    assert batch.xid == 6
