"""Proof that a switch obeys ``set_queue``: packets through each queue of each port, and the queues' own counters.

A probe packet goes to the group address that 802.1D bridges never forward. Its IP addresses are reserved for
documentation (RFC 5737). So no switch forwards it, and no host accepts it.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.code_points import CodePoints
from controller.dataplane.channel import Channel, in_turns
from controller.dataplane.queues.numbers import class_of, queue_ids
from controller.dataplane.values import PortProof

PACKETS = 3
_ROUNDS = 3
_ROUND_SECONDS = 0.8
_POLL_SECONDS = 0.02
_BRIDGE_GROUP = bytes.fromhex("0180c200000e")
_SOURCE = bytes.fromhex("027472000001")
_DISCARD_PORT = 9

Counters = Mapping[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class ProbedPort:
    """A port to prove: its number and its name for people."""

    number: int
    name: str


def port_name(name: bytes) -> str:
    """Returns a port's name up to the first NUL, without characters that could forge a log line."""
    text = name.partition(b"\0")[0].decode(errors="replace")
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def frame(dscp: int) -> bytes:
    """Returns a small Ethernet frame with an IPv4 UDP packet of this DSCP, addressed to no host."""
    payload = b"trainyard probe".ljust(18, b"\0")
    udp = struct.pack("!HHHH", _DISCARD_PORT, _DISCARD_PORT, 8 + len(payload), 0) + payload
    fields = (0x45, dscp << 2, 20 + len(udp), 0, 0x4000, 1, 17)
    addresses = bytes((192, 0, 2, 1)), bytes((192, 0, 2, 2))
    checksum = _checksum(struct.pack("!BBHHHBBH4s4s", *fields, 0, *addresses))
    return _BRIDGE_GROUP + _SOURCE + b"\x08\x00" + struct.pack("!BBHHHBBH4s4s", *fields, checksum, *addresses) + udp


def _checksum(header: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def read_counters(channel: Channel) -> Counters:
    """Returns (packets, bytes) sent by each queue, by (port, queue). Raises SwitchGoneError."""
    request = parser.OFPQueueStatsRequest(channel.datapath, 0, ofp.OFPP_ANY, ofp.OFPQ_ALL)
    replies, refusals = channel.ask(request)
    if refusals:
        return {}
    return {
        (stat.port_no, stat.queue_id): (stat.tx_packets, stat.tx_bytes) for r in in_turns(replies) for stat in r.body
    }


def prove(channel: Channel, ports: Sequence[ProbedPort], classes: int, points: CodePoints) -> tuple[PortProof, ...]:
    """Prove every queue of every port. An unproven port has a problem in its proof. Raises SwitchGoneError.

    The packets through a queue have the DSCP of its class in ``points``, as those of jobs have.
    A queue is proven when its own counter rises by the packets sent through it. A busy port may drop a packet, so
    packets that were not counted are sent again, a few times.
    """
    before, ids = read_counters(channel), queue_ids(classes, channel.queue_numbers)
    problems = {port.number: _missing(port, before, ids) for port in ports}
    open_queues = {(p.number, q) for p in ports if problems[p.number] is None for q in ids}
    now = before
    for _ in range(_ROUNDS):
        if not open_queues:
            break
        sent = [_packet_out(channel, *key, points) for key in sorted(open_queues) for _ in range(PACKETS)]
        channel.settle(sent)
        deadline = time.monotonic() + _ROUND_SECONDS
        while open_queues and time.monotonic() < deadline:
            hub.sleep(_POLL_SECONDS)
            now = read_counters(channel)
            open_queues = {key for key in open_queues if _rise(before, now, key) < PACKETS}
    proofs = []
    for port in ports:
        rises = {queue: _rise(before, now, (port.number, queue)) for queue in ids}
        silent = [queue for queue in ids if (port.number, queue) in open_queues]
        problem = problems[port.number] or (_ignored(port, silent, rises) if silent else None)
        proofs.append(PortProof(port.number, port.name, rises, problem))
    return tuple(proofs)


def _packet_out(channel: Channel, port: int, queue: int, points: CodePoints) -> Any:
    service_class = class_of(queue, channel.queue_numbers)
    dscp = points.other if service_class is None else points.classes[service_class]
    return parser.OFPPacketOut(
        channel.datapath,
        buffer_id=ofp.OFP_NO_BUFFER,
        in_port=ofp.OFPP_CONTROLLER,
        actions=[parser.OFPActionSetQueue(queue), parser.OFPActionOutput(port)],
        data=frame(dscp),
    )


def _rise(before: Counters, now: Counters, key: tuple[int, int]) -> int:
    return now.get(key, (0, 0))[0] - before.get(key, (0, 0))[0]


def _missing(port: ProbedPort, counters: Counters, ids: Sequence[int]) -> str | None:
    missing = [queue for queue in ids if (port.number, queue) not in counters]
    if not missing:
        return None
    needs = f"0 to {ids[-1]}" if list(ids) == list(range(len(ids))) else ", ".join(map(str, sorted(ids)))
    return f"port {port.name} has no queue {', '.join(map(str, missing))}; it needs {needs}"


def _ignored(port: ProbedPort, silent: Sequence[int], rises: Mapping[int, int]) -> str:
    sent, counted = len(rises) * PACKETS, sum(rises.values())
    where = max(rises, key=lambda queue: rises[queue])
    numbers = ", ".join(map(str, silent))
    if counted >= sent:
        return f"port {port.name}: packets for queue {numbers} left by queue {where}; the switch ignores set_queue"
    return f"port {port.name}: packets for queue {numbers} were not counted there"
