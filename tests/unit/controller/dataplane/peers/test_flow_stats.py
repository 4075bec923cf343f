"""The entries of flow statistics: read once each, whatever their counters say, and as Ryu would read them."""

from __future__ import annotations

import struct
from collections.abc import Iterable

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from controller.dataplane import openflow
from controller.dataplane.peers import flow_stats
from controller.dataplane.peers.message_shapes import MalformedError, check_flow_stats
from controller.rules.rule import Rule
from evaluation.bench.support.openflow.messages import parts
from tests.support.controller.dataplane.dataplane_world import rules_for

DATAPATH = ProtocolDesc(version=ofp.OFP_VERSION)
HEAD = 16
RULES = sorted(rules_for({"a": 0, "b": 1, "c": 6}), key=repr)


@pytest.fixture(autouse=True)
def _installed() -> None:
    flow_stats.install()


def entry(rule: Rule, packets: int = 0, seconds: int = 0) -> bytes:
    """Returns the statistics of a rule as a switch sends them (OpenFlow 1.3.5, 7.3.5.2)."""
    sent = openflow.add(DATAPATH, rule, 0)
    body = sent.with_header(0)[48:]
    head = struct.pack(
        "!HBxIIHHHH4xQQQ",
        48 + len(body),
        rule.table,
        seconds,
        5,
        rule.priority,
        0,
        0,
        0,
        openflow.cookie(rule.job, 0),
        packets,
        packets * 64,
    )
    return head + body


def answer(entries: Iterable[bytes]) -> bytes:
    return parts(ofp.OFPMP_FLOW, b"".join(entries))


def read(message: bytes) -> list[Rule | None]:
    check_flow_stats(message, HEAD)
    reply = parser.OFPMultipartReply.parser(DATAPATH, 4, ofp.OFPT_MULTIPART_REPLY, len(message), 7, message)
    return [held.rule for held in openflow.read_rules(1, [reply])]


def without_job(rule: Rule) -> Rule:
    return rule._replace(job=None)


def test_rules_are_read_as_they_were_sent_the_first_time_and_again() -> None:
    for packets in (0, 1_000_000):
        message = answer(entry(rule, packets, seconds=packets % 97) for rule in RULES)
        assert read(message) == [without_job(rule) for rule in RULES]


def test_what_differs_in_more_than_counters_is_another_entry() -> None:
    rule = RULES[-1]
    assert read(answer([entry(rule)])) == [without_job(rule)]
    first = flow_stats.RememberedFlowStats.parser(entry(rule, 1, 2), 0)
    assert flow_stats.RememberedFlowStats.parser(entry(rule, 3, 4), 0) is first, "it is parsed once"
    for at in range(48 + 8):
        changed = bytearray(entry(rule))
        changed[at] ^= 1
        is_same = at in range(4, 12) or at in range(32, 48)
        if at in {0, 1} or at >= 48:
            continue
        assert (flow_stats.RememberedFlowStats.parser(bytes(changed), 0) is first) is is_same, at


def test_a_wrong_entry_is_refused_each_time_also_after_a_right_one() -> None:
    right = entry(RULES[-1])
    wrong = bytearray(right)
    # The type of the first instruction, behind the padded match.
    match = struct.unpack_from("!H", right, 50)[0]
    wrong[48 + (match + 7) // 8 * 8 + 1] = 99
    check_flow_stats(answer([right]), HEAD)
    for _ in range(2):
        with pytest.raises(MalformedError):
            check_flow_stats(answer([right, bytes(wrong)]), HEAD)


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_stats, "MOST", 10)
    monkeypatch.setattr(flow_stats, "_remembered", {})
    for priority in range(1, 26):
        flow_stats.RememberedFlowStats.parser(entry(RULES[0]._replace(priority=priority)), 0)
        assert 0 < len(flow_stats._remembered) <= 10
