"""What a peer sends, checked before Ryu reads it: each length that Ryu would trust, each turn, each bound."""

from __future__ import annotations

import struct

import pytest
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.peers.message_stream import (
    MAX_ANSWER,
    MAX_COUNTERS_ANSWER,
    MAX_PORTS,
    MAX_REQUESTS,
    MessageStream,
    RefusedError,
    Step,
)
from evaluation.bench.support.openflow.messages import message, parts, parts_request, recorded
from evaluation.bench.support.openflow.reader import FEATURES, RyuBehind, ready_stream

HELLO = message(ofp.OFPT_HELLO, b"")
PORT = bytes(64)


def refusal(stream: MessageStream, data: bytes) -> str:
    stream.feed(data)
    with pytest.raises(RefusedError) as caught:
        while stream.next_step() is not None:
            pass
    return str(caught.value)


def steps(stream: MessageStream, data: bytes) -> list[Step]:
    stream.feed(data)
    found = []
    while (step := stream.next_step()) is not None:
        found.append(step)
    return found


def asked(kind: int) -> MessageStream:
    stream = ready_stream()
    stream.sent(parts_request(kind))
    return stream


def rule(match: bytes = b"\0\1\0\4\0\0\0\0", instructions: bytes = b"", length: int | None = None) -> bytes:
    size = 48 + len(match) + len(instructions)
    return struct.pack("!H", size if length is None else length) + bytes(46) + match + instructions


def match(field: bytes) -> bytes:
    length = 4 + len(field)
    return struct.pack("!HH", 1, length) + field + bytes(-length % 8)


def apply_actions(actions: bytes) -> bytes:
    return struct.pack("!HH4x", ofp.OFPIT_APPLY_ACTIONS, 8 + len(actions)) + actions


# Lengths of which Ryu makes an endless loop, or an exception ---------------------------------------------------------


def test_the_hello_that_hung_the_controller() -> None:
    said = refusal(MessageStream(), bytes.fromhex("0400000c0000000100010000"))
    assert said.startswith(
        "its HELLO message is malformed: at offset 8 there is a hello element of 0 bytes; at least 4"
    )


@pytest.mark.parametrize(
    ("rules", "problem"),
    [
        (rule(length=0), "at offset 16 there is a rule of 0 bytes; at least 56 are needed, and 56 are left"),
        (rule() + rule(length=40), "at offset 72 there is a rule of 40 bytes"),
        (rule(length=57), "at offset 16 there is a rule of 57 bytes"),
        (rule()[:30], "at offset 16 there is half a rule"),
        (rule(match=b"\0\1\0\0\0\0\0\0"), "at offset 64 there is a match of 0 bytes"),
        (rule(match=b"\0\1\0\x10\0\0\0\0"), "at offset 64 there is a match of 16 bytes"),
        (rule(match=b"\0\0\0\4\0\0\0\0"), "at offset 64 there is a match of type 0"),
        (rule(match=match(bytes.fromhex("80000004000000"))), "a match field of 4 bytes where 3 are left"),
        (rule(match=match(bytes.fromhex("80000000"))), "match field 0 of class 0x8000 with length 0"),
        (rule(match=match(bytes.fromhex("00020000"))), "match field 0 of class 0x0002 with length 0"),
        (rule(match=match(bytes.fromhex("80000a0400000000"))), "match field 5 of class 0x8000 with length 4, which"),
        (rule(match=match(bytes.fromhex("ffff00080000000000000000"))), "match field 0 of class 0xffff with length 8"),
        (rule(instructions=bytes(8)), "an instruction of 0 bytes"),
        (
            rule(instructions=struct.pack("!HHI", 4, 16, 0)),
            "an instruction of 16 bytes; at least 8 are needed, and 8 are left",
        ),
        (rule(instructions=struct.pack("!HHI", 1, 8, 0) + bytes(4)), "half an instruction"),
        (rule(instructions=struct.pack("!HHI", 0xFFFF, 8, 9)), "an instruction of type 65535"),
        (rule(instructions=struct.pack("!HHI", 2, 8, 9)), "an instruction of type 2 and 8 bytes"),
        (rule(instructions=apply_actions(bytes(8))), "an action of 0 bytes"),
        (rule(instructions=apply_actions(struct.pack("!HHI", 0, 8, 1))), "an action of type 0 and 8 bytes"),
        (rule(instructions=apply_actions(struct.pack("!HHI", 99, 8, 1))), "an action of type 99"),
        (rule(instructions=apply_actions(struct.pack("!HHI", 25, 8, 0x80001001))), "1 bytes where 0 are left"),
        (
            rule(instructions=apply_actions(struct.pack("!HHII4x", 25, 16, 0x80000B04, 7))),
            "a set-field action with a mask",
        ),
        (rule(match=match(bytes.fromhex("0002000100") * 500)), "a match of 2504 bytes, which is more than 2048"),
        (rule(instructions=apply_actions(struct.pack("!HHI", 22, 8, 1) * 1020)), "which is more than 8192"),
    ],
)
def test_rules_whose_lengths_do_not_fit(rules: bytes, problem: str) -> None:
    said = refusal(asked(ofp.OFPMP_FLOW), parts(ofp.OFPMP_FLOW, rules))
    assert said.startswith("its MULTIPART_REPLY message is malformed: at offset ")
    assert problem in said


@pytest.mark.parametrize(
    ("kind", "body"),
    [(ofp.OFPMP_PORT_DESC, bytes(63)), (ofp.OFPMP_QUEUE, bytes(41)), (ofp.OFPMP_PORT_STATS, bytes(113)),
     (ofp.OFPMP_AGGREGATE, b""),
     (ofp.OFPMP_AGGREGATE, bytes(48))],
)  # fmt: skip
def test_ports_queues_and_counts_of_another_size(kind: int, body: bytes) -> None:
    assert "malformed" in refusal(asked(kind), parts(kind, body))


def meter(bands: bytes = b"", length: int | None = None) -> bytes:
    return struct.pack("!HHI", 8 + len(bands) if length is None else length, 1, 7) + bands


BAND = struct.pack("!HHII4x", ofp.OFPMBT_DROP, 16, 1000, 0)


@pytest.mark.parametrize(
    ("meters", "problem"),
    [
        (meter(BAND, length=0), "at offset 16 there is a meter of 0 bytes"),
        (meter(BAND) + meter(BAND, length=40), "at offset 40 there is a meter of 40 bytes"),
        (meter(BAND)[:6], "at offset 16 there is half a meter"),
        (meter(BAND + bytes(8)), "at offset 16 there is a meter of 32 bytes; a band has 16"),
        (meter(bytes(16)), "at offset 24 there is a band of type 0 and 0 bytes"),
        (meter(struct.pack("!HHII4x", 1, 8, 1000, 0)), "at offset 24 there is a band of type 1 and 8 bytes"),
        (meter(struct.pack("!HHII4x", 9, 16, 1000, 0)), "at offset 24 there is a band of type 9"),
    ],
)
def test_meters_whose_lengths_do_not_fit(meters: bytes, problem: str) -> None:
    assert problem in refusal(asked(ofp.OFPMP_METER_CONFIG), parts(ofp.OFPMP_METER_CONFIG, meters))


def test_meters_come_in_pieces_that_ryu_reads() -> None:
    whole = parts(ofp.OFPMP_METER_CONFIG, meter(BAND) * 1000 + meter())
    pieces = [step.deliver for step in steps(asked(ofp.OFPMP_METER_CONFIG), whole)]
    assert len(pieces) > 1
    read = [stat for each in pieces for stat in parser.OFPMultipartReply.parser(None, 4, 19, len(each), 7, each).body]
    assert [(stat.meter_id, len(stat.bands)) for stat in read] == [(7, 1)] * 1000 + [(7, 0)]


@pytest.mark.parametrize(
    "kind",
    [ofp.OFPMP_GROUP, ofp.OFPMP_GROUP_DESC, ofp.OFPMP_TABLE_FEATURES, ofp.OFPMP_METER,
     ofp.OFPMP_DESC, ofp.OFPMP_EXPERIMENTER],
)  # fmt: skip
def test_buckets_meters_and_table_features_are_answers_to_nothing(kind: int) -> None:
    said = refusal(asked(ofp.OFPMP_FLOW), parts(kind, bytes(8)))
    assert said == f"its MULTIPART_REPLY of type {kind} answers a request of type 1"
    assert "which was not requested" in refusal(asked(kind), parts(kind, bytes(8))), "not even if it were asked for"


@pytest.mark.parametrize(
    "kind",
    [ofp.OFPT_QUEUE_GET_CONFIG_REPLY, ofp.OFPT_GET_CONFIG_REPLY, ofp.OFPT_ROLE_REPLY, ofp.OFPT_GET_ASYNC_REPLY,
     ofp.OFPT_FLOW_MOD, ofp.OFPT_FEATURES_REQUEST, ofp.OFPT_PACKET_OUT, 30, 255],
)  # fmt: skip
def test_types_that_no_switch_sends_here(kind: int) -> None:
    assert "which no switch sends here" in refusal(ready_stream(), message(kind, bytes(8)))


def test_a_bundles_properties() -> None:
    control = struct.pack("!IIIHH", 0x4F4E4600, ofp.ONF_ET_BUNDLE_CONTROL, 1, 1, 3)
    for properties, problem in ((bytes(8), "a property of 0 bytes"), (bytes(3), "half a property"), (b"", None)):
        stream = ready_stream()
        stream.sent(message(ofp.OFPT_EXPERIMENTER, control))
        answer = message(ofp.OFPT_EXPERIMENTER, control + properties)
        if problem is None:
            assert steps(stream, answer) == [Step(deliver=answer)]
        else:
            assert problem in refusal(stream, answer)


def test_removed_rules() -> None:
    right = message(ofp.OFPT_FLOW_REMOVED, bytes(40) + match(bytes.fromhex("80000a020800")))
    assert steps(ready_stream(), right) == [Step(deliver=right)]
    for body in (bytes(40), bytes(40) + b"\0\1\0\0\0\0\0\0", bytes(40) + match(b"") + bytes(8)):
        assert "its FLOW_REMOVED message is malformed" in refusal(ready_stream(), message(ofp.OFPT_FLOW_REMOVED, body))


def test_a_header_that_is_shorter_than_itself() -> None:
    for length in range(8):
        said = refusal(ready_stream(), struct.pack("!BBHI", 4, ofp.OFPT_ECHO_REQUEST, length, 1) + bytes(8))
        assert said == f"its ECHO_REQUEST message has a length of {length}; at least 8 is right"


# The version, and whose turn it is ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("version", "bitmap", "speaks"),
    [(4, None, True), (6, None, True), (3, None, False), (1, None, False), (6, 0b10010, True), (4, 0b1010, False),
     (1, 0b10000, True)],
)  # fmt: skip
def test_the_version_is_agreed_on_here(version: int, bitmap: int | None, speaks: bool) -> None:
    elements = b"" if bitmap is None else struct.pack("!HHI", ofp.OFPHET_VERSIONBITMAP, 8, bitmap)
    hello = message(ofp.OFPT_HELLO, elements, xid=9, version=version)
    stream = MessageStream()
    if speaks:
        assert steps(stream, hello) == [Step(deliver=message(ofp.OFPT_HELLO, b"", xid=9))]
        return
    stream.feed(hello)
    with pytest.raises(
        RefusedError, match=r"it speaks OpenFlow 1\.[02].*; allow OpenFlow 1\.3 at the switch"
    ) as caught:
        stream.next_step()
    assert caught.value.reply[:12] == struct.pack("!BBHIHH", 4, ofp.OFPT_ERROR, len(caught.value.reply), 9, 0, 0)


def test_a_peer_that_refuses_our_hello_says_why() -> None:
    said = refusal(MessageStream(), message(ofp.OFPT_ERROR, bytes(4) + b"only 1.0\xff here\0", version=1))
    assert said == "it refuses the hello with error 0, code 0: 'only 1.0\N{REPLACEMENT CHARACTER} here'"


def test_who_does_not_begin_with_a_hello_is_no_switch() -> None:
    assert "begins with type 69 of version 71, and not with" in refusal(MessageStream(), b"GET / HTTP/1.1\r\n")
    assert "begins with PORT_STATUS" in refusal(MessageStream(), message(ofp.OFPT_PORT_STATUS, bytes(72)))


def test_one_hello_and_one_version() -> None:
    stream = MessageStream()
    assert len(steps(stream, HELLO)) == 1
    assert refusal(stream, HELLO) == "it says hello twice"
    assert "is of version 1; 4 was agreed on" in refusal(ready_stream(), message(ofp.OFPT_ECHO_REQUEST, b"", version=1))


def test_before_it_is_a_switch_a_peer_may_say_little() -> None:
    stream = MessageStream()
    steps(stream, HELLO)
    early = [message(ofp.OFPT_PORT_STATUS, bytes(72)), message(ofp.OFPT_PACKET_IN, bytes(60_000)), FEATURES]
    assert steps(stream, b"".join(early)) == [], "nobody has asked for its features yet, and no port is known"
    assert not stream.is_ready
    for kind in (ofp.OFPT_ECHO_REQUEST, ofp.OFPT_ERROR):
        waiting = MessageStream()
        steps(waiting, HELLO)
        assert "before it is known as a switch" in refusal(waiting, message(kind, bytes(2000))[:8]), "by its header"
    assert "before it is known as a switch" in refusal(MessageStream(), message(ofp.OFPT_HELLO, bytes(2000))[:8])


def test_an_auxiliary_connection_is_not_taken_for_the_switch() -> None:
    stream = MessageStream()
    steps(stream, HELLO)
    stream.sent(message(ofp.OFPT_FEATURES_REQUEST, b"", xid=5))
    assert "auxiliary" in refusal(stream, FEATURES[:21] + b"\x01" + FEATURES[22:])


# What nobody asked for, and what is too much --------------------------------------------------------------------------


def test_answers_to_nothing_are_dropped_unread() -> None:
    stream = ready_stream()
    unread = [parts(ofp.OFPMP_FLOW, rule(length=0), xid=99), FEATURES, message(ofp.OFPT_BARRIER_REPLY, b"", xid=98),
              message(ofp.OFPT_ECHO_REPLY, b"", xid=97), message(ofp.OFPT_EXPERIMENTER, bytes(30), xid=96)]  # fmt: skip
    assert steps(stream, b"".join(unread) * 3) == []
    stream.sent(message(ofp.OFPT_BARRIER_REQUEST, b"", xid=1))
    answer = message(ofp.OFPT_BARRIER_REPLY, b"", xid=1)
    assert steps(stream, answer * 2) == [Step(deliver=answer)], "the second one answers nothing"


def test_each_of_the_messages_that_are_sent_as_one_piece_has_its_answer() -> None:
    stream = ready_stream()
    kinds = (ofp.OFPT_BARRIER_REQUEST, ofp.OFPT_FLOW_MOD, ofp.OFPT_ECHO_REQUEST, ofp.OFPT_BARRIER_REQUEST)
    stream.sent(b"".join(message(kind, bytes(8 * xid), xid=xid) for xid, kind in enumerate(kinds)))
    answers = [
        message(kind, b"", xid=xid)
        for xid, kind in ((0, ofp.OFPT_BARRIER_REPLY), (2, ofp.OFPT_ECHO_REPLY), (3, ofp.OFPT_BARRIER_REPLY))
    ]
    assert [step.deliver for step in steps(stream, b"".join(answers))] == answers


def test_an_answer_of_another_type_than_was_asked_for() -> None:
    stream = ready_stream()
    stream.sent(message(ofp.OFPT_BARRIER_REQUEST, b"", xid=1))
    assert "answers a request of another type" in refusal(stream, message(ofp.OFPT_ECHO_REPLY, b"", xid=1))


def test_packets_are_dropped_without_keeping_them() -> None:
    stream = ready_stream()
    stream.feed(message(ofp.OFPT_PACKET_IN, bytes(60_000))[:30_000])
    assert stream.next_step() is None
    assert not stream._data[stream._at :]
    assert steps(stream, bytes(30_008)) == []
    assert len(steps(stream, message(ofp.OFPT_ECHO_REQUEST, b""))) == 1


@pytest.mark.parametrize(
    ("kind", "most"),
    [(ofp.OFPMP_FLOW, MAX_ANSWER), (ofp.OFPMP_QUEUE, MAX_COUNTERS_ANSWER), (ofp.OFPMP_PORT_STATS, MAX_COUNTERS_ANSWER)],
)
def test_an_answer_without_end_is_ended(kind: int, most: int) -> None:
    stream = asked(kind)
    part = parts(kind, b"", flags=ofp.OFPMPF_REPLY_MORE)
    taken = 0
    with pytest.raises(RefusedError, match=f"has more than {most} bytes"):
        while taken <= most // len(part):
            taken += len(steps(stream, part * 100))
    assert taken <= most // 1024


def test_ports_are_bounded_and_those_that_go_make_room() -> None:
    def status(number: int, reason: int) -> bytes:
        return message(ofp.OFPT_PORT_STATUS, struct.pack("!B7xI60x", reason, number))

    stream = ready_stream()
    for number in range(3 * MAX_PORTS):
        assert len(steps(stream, status(number, ofp.OFPPR_ADD) + status(number, ofp.OFPPR_DELETE))) == 2
    for number in range(MAX_PORTS):
        steps(stream, status(number, ofp.OFPPR_ADD))
    assert refusal(stream, status(MAX_PORTS, ofp.OFPPR_MODIFY)) == f"it has more than {MAX_PORTS} ports"
    assert "the reason 3" in refusal(ready_stream(), status(1, 3))


def test_requests_that_are_never_answered_are_forgotten() -> None:
    stream = ready_stream()
    for xid in range(3 * MAX_REQUESTS):
        stream.sent(message(ofp.OFPT_BARRIER_REQUEST, b"", xid=xid))
    assert len(stream._requests) == MAX_REQUESTS
    assert steps(stream, message(ofp.OFPT_BARRIER_REPLY, b"", xid=0)) == []
    assert len(steps(stream, message(ofp.OFPT_BARRIER_REPLY, b"", xid=3 * MAX_REQUESTS - 1))) == 1


def test_errors_are_cut_and_keep_what_they_say() -> None:
    body = struct.pack("!HH", ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL) + bytes(range(200))
    (step,) = steps(ready_stream(), message(ofp.OFPT_ERROR, body, xid=3))
    assert step.deliver == message(ofp.OFPT_ERROR, body[:68], xid=3)
    for body in (b"", b"\0", b"\xff\xff\0\0\0"):
        assert "its ERROR message is malformed" in refusal(ready_stream(), message(ofp.OFPT_ERROR, body))


def test_echoes_are_answered_here() -> None:
    (step,) = steps(ready_stream(), message(ofp.OFPT_ECHO_REQUEST, b"are you there", xid=77))
    assert step == Step(reply=message(ofp.OFPT_ECHO_REPLY, b"are you there", xid=77))


# What passes ----------------------------------------------------------------------------------------------------------


def test_a_real_switchs_sessions_pass_in_any_chunks() -> None:
    for session in recorded():
        for size in (1, 7, 1000):
            stream = MessageStream()
            for kind, data in session:
                if kind == "asks":
                    stream.sent(data)
                    continue
                for at in range(0, len(data), size):
                    found = steps(stream, data[at : at + size])
                    assert not found or at + size >= len(data)
            assert stream.is_ready


def test_a_long_answer_comes_in_pieces_that_say_the_same() -> None:
    of_switch = [data for session in recorded() for kind, data in session if kind == "tells"]
    body = next(data for data in of_switch if data[8:10] == b"\0\1" and len(data) > 5000)[16:]
    whole = parts(ofp.OFPMP_FLOW, body * 10)
    pieces = [step.deliver for step in steps(asked(ofp.OFPMP_FLOW), whole)]
    assert len(pieces) > 10
    assert max(map(len, pieces)) < 5000
    read = [parser.OFPMultipartReply.parser(None, 4, 19, len(piece), 7, piece) for piece in pieces]
    assert [reply.flags for reply in read] == [ofp.OFPMPF_REPLY_MORE] * (len(pieces) - 1) + [0]
    expected = parser.OFPMultipartReply.parser(None, 4, 19, len(whole), 7, whole)
    assert [str(stat) for reply in read for stat in reply.body] == [str(stat) for stat in expected.body]
    more = asked(ofp.OFPMP_QUEUE)
    last = steps(more, parts(ofp.OFPMP_QUEUE, bytes(40 * 200), flags=1))[-1].deliver
    assert last[11] == 1, "more parts follow"
    assert len(steps(more, parts(ofp.OFPMP_QUEUE, b""))) == 1


def test_a_vendors_action_is_handed_on_as_one_that_nobody_knows() -> None:
    learn = struct.pack("!HHIH", 0xFFFF, 16, 0x2320, 16) + bytes(6)
    of_another = struct.pack("!HHI8x", 0xFFFF, 16, 0x2321)
    data = parts(ofp.OFPMP_FLOW, rule(instructions=apply_actions(learn + of_another)))
    (step,) = steps(asked(ofp.OFPMP_FLOW), data)
    reply = parser.OFPMultipartReply.parser(None, 4, 19, len(step.deliver), 7, step.deliver)
    actions = reply.body[0].instructions[0].actions
    assert [type(action) for action in actions] == [parser.OFPActionExperimenterUnknown] * 2
    assert [action.len for action in actions] == [16, 16]
    RyuBehind().read(step.deliver)
