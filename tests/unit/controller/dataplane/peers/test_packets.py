"""Packets that a switch sends to the controller: read as long as they are asked for, few, and announcements alone."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane import openflow
from controller.dataplane.peers.message_stream import MAX_PACKET_IN, MAX_PACKET_INS, MessageStream, Step
from controller.wire.announcement import Announcement, frame_of
from evaluation.bench.support.openflow.messages import message
from evaluation.bench.support.openflow.reader import ready_stream
from tests.support.controller.dataplane.fake_datapath import FakeDatapath

FRAME = frame_of(Announcement("02:00:00:00:00:07", "0123456789abcdef" * 2), "h7")
DATAPATH = FakeDatapath(1, lambda _message: None)


def request(*, is_listening: bool) -> bytes:
    made = openflow.listen(DATAPATH, is_listening=is_listening)
    made.set_xid(0)
    made.serialize()
    return bytes(made.buf)


def packet(frame: bytes, match: bytes = struct.pack("!HHIIxxxx", 1, 12, 0x80000004, 5)) -> bytes:
    head = struct.pack("!IHBBQ", ofp.OFP_NO_BUFFER, len(frame), ofp.OFPR_ACTION, 0, 0)
    return message(ofp.OFPT_PACKET_IN, head + match + bytes(2) + frame)


def steps(stream: MessageStream, data: bytes) -> list[Step]:
    stream.feed(data)
    found = []
    while (step := stream.next_step()) is not None:
        found.append(step)
    return found


@pytest.fixture
def listening() -> MessageStream:
    stream = ready_stream()
    stream.sent(request(is_listening=True))
    return stream


def test_an_announcement_is_handed_on_as_it_is(listening: MessageStream) -> None:
    sent = packet(FRAME)
    assert steps(listening, sent) == [Step(deliver=sent)]
    read = parser.OFPPacketIn.parser(DATAPATH, ofp.OFP_VERSION, ofp.OFPT_PACKET_IN, len(sent), 0, sent)
    assert (bytes(read.data), read.match["in_port"]) == (FRAME, 5)


def test_who_does_not_listen_reads_nothing(listening: MessageStream) -> None:
    assert steps(ready_stream(), packet(FRAME)) == []
    listening.sent(request(is_listening=False))
    assert steps(listening, packet(FRAME)) == []


@pytest.mark.parametrize(
    "sent",
    [
        packet(FRAME.replace(b"trainyard", b"something")),
        packet(b""),
        packet(FRAME + bytes(MAX_PACKET_IN)),
        packet(FRAME, match=struct.pack("!HH4x", 0, 4)),
        packet(FRAME, match=struct.pack("!HH4x", 1, 400)),
        packet(FRAME)[:8] + bytes(0),
    ],
)
def test_any_other_packet_is_dropped_and_the_switch_stays(listening: MessageStream, sent: bytes) -> None:
    sent = sent[:2] + struct.pack("!H", len(sent)) + sent[4:]
    assert steps(listening, sent) == []
    assert len(steps(listening, packet(FRAME))) == 1


def test_a_flood_of_packets_ends_with_a_word_to_the_switch(listening: MessageStream) -> None:
    noise = packet(FRAME.replace(b"trainyard", b"something"))
    assert steps(listening, noise * (MAX_PACKET_INS - 1)) == []
    assert steps(listening, noise) == [Step(reply=request(is_listening=False))]
    assert steps(listening, packet(FRAME) * 10) == []
    listening.sent(request(is_listening=True))
    assert len(steps(listening, packet(FRAME))) == 1
