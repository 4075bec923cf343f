"""A real Open vSwitch that gets rules as OpenFlow messages, tells them, and says what it does with a packet."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from typing import Any, NamedTuple

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_parser import msg
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from controller.dataplane import openflow
from controller.rules.rule import Rule
from evaluation.bench.support.openflow.openvswitch_process import DPID, OpenVSwitch
from tests.support.packets import unixctl

_HEADER = 8


class Traced(NamedTuple):
    """What the switch does with a packet: its queue and the DSCP that it writes (None: none), and where it sends it."""

    queue: int | None
    dscp: int | None
    meters: tuple[int, ...]
    ports: tuple[int, ...]


class TracedSwitch:
    """The management connection of a bridge. Each exchange ends with a barrier. ``numbers`` are classes' queues."""

    def __init__(self, switch: OpenVSwitch, numbers: tuple[int, ...] = ()) -> None:
        self._switch = switch
        self._numbers = numbers
        self._datapath = ProtocolDesc(version=ofp.OFP_VERSION)
        self._xid = 0
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(20)
        self._socket.connect(str(switch.folder / "br0.mgmt"))
        self._send(parser.OFPHello(self._datapath))

    def close(self) -> None:
        self._socket.close()

    def install(self, rules: Iterable[Rule]) -> list[str]:
        """Install rules, the gate included; returns what the switch has refused, each with its rule."""
        sent = {self._send(openflow.add(self._datapath, rule, 1, self._numbers)): rule for rule in rules}
        self._send(openflow.gate(self._datapath, 60_000))
        return [
            f"{error.type}/{error.code} for {sent.get(error.xid)}"
            for error in self._answers()
            if isinstance(error, parser.OFPErrorMsg)
        ]

    def ask(self, *messages: Any) -> list[Any]:
        """Returns the answers to messages, without those to the barrier."""
        for message in messages:
            self._send(message)
        return self._answers()

    def held(self) -> frozenset[Rule]:
        """Returns the rules of ours that it tells. One that this version would not make fails the test."""
        held = openflow.read_rules(DPID, self.ask(openflow.read_request(self._datapath)), self._numbers)
        assert all(each.rule is not None for each in held), [each for each in held if each.rule is None]
        return frozenset(each.rule for each in held if each.rule is not None)

    def trace(self, flow: str) -> Traced:
        """Returns what becomes of a packet, as ``ofproto/trace`` describes packets: fields, or a port and bytes."""
        text = self.text(flow)
        queues, dscps = re.findall(r"set_queue:(\d+)", text), re.findall(r"set_field:(\d+)->ip_dscp", text)
        return Traced(
            int(queues[-1]) if queues else None,
            int(dscps[-1]) if dscps else None,
            _numbers(r"^\s+meter:(\d+)", text),
            _numbers(r"^\s+output:(\d+)", text),
        )

    def text(self, flow: str) -> str:
        """Returns what the switch says that it does with a packet."""
        return unixctl.ask(self._switch.folder / "ovs-vswitchd.ctl", "ofproto/trace", "br0", *flow.split())

    @property
    def datapath(self) -> Any:
        return self._datapath

    def _send(self, message: Any) -> int:
        self._xid += 1
        message.set_xid(self._xid)
        message.serialize()
        self._socket.sendall(message.buf)
        return self._xid

    def _answers(self) -> list[Any]:
        last = self._send(parser.OFPBarrierRequest(self._datapath))
        answers = []
        while True:
            version, kind, length, xid = _header(self._read(_HEADER))
            body = self._read(length - _HEADER)
            if xid == last:
                return answers
            if kind not in {ofp.OFPT_HELLO, ofp.OFPT_ECHO_REQUEST}:
                header = length.to_bytes(2, "big") + xid.to_bytes(4, "big")
                data = bytes((version, kind)) + header + body
                answers.append(msg(self._datapath, version, kind, length, xid, data))

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            assert more, "the switch has closed the connection"
            data += more
        return data


def _numbers(pattern: str, text: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(pattern, text, re.MULTILINE)))


def _header(data: bytes) -> tuple[int, int, int, int]:
    return data[0], data[1], int.from_bytes(data[2:4], "big"), int.from_bytes(data[4:8], "big")
