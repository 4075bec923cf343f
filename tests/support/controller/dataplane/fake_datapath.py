"""An OpenFlow 1.3 switch in pure Python that answers Ryu's messages, well or badly, as a test wants."""

from __future__ import annotations

import struct
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser
from ryu.ofproto.ofproto_parser import header, msg
from ryu.ofproto.ofproto_protocol import ProtocolDesc

from controller.dataplane.messages import Batch, FlowMod, InBundle

Key = tuple[int, int, tuple[Any, ...]]


def key_of(message: Any) -> Key:
    return (message.table_id, message.priority, tuple(sorted(message.match.items())))


def as_read(datapath: Any, message: Any) -> Any:
    """Returns Ryu's form of a message, with its fields: what a switch reads from the bytes."""
    if isinstance(message, InBundle):
        message.serialize()
        bundle_id, flags = struct.unpack_from("!I2xH", message.buf, 16)
        outer = parser.ONFBundleAddMsg(datapath, bundle_id, flags, _flow_mod(datapath, message.buf[24:]), [])
        outer.xid = message.xid
        return outer
    if isinstance(message, FlowMod):
        return _flow_mod(datapath, message.with_header(message.xid or 0))
    return message


def _flow_mod(datapath: Any, data: bytes) -> Any:
    version, kind, length, xid = header(data)
    assert length == len(data)
    read = copy(_parsed(version, kind, data[8:]))
    read.datapath, read.xid = datapath, xid
    return read


@lru_cache(maxsize=4096)
def _parsed(version: int, kind: int, body: bytes) -> Any:
    """A message without its transaction id. Ryu takes long to read one, and a test sends many that are the same."""
    return msg(None, version, kind, 8 + len(body), 0, bytes(8) + body)


@dataclass
class Behaviour:
    """What is wrong with the switch. ``refuses`` looks at a flow mod; ``table_size`` is felt at the commit only.

    ``deaf`` are ports at which it ignores set_queue, ``bare`` are ports without queues; ``meters`` is how many it can
    have; ``forgets_actions``: it tells its rules without what they do; ``at_probe`` is called at each packet that it is
    to send.
    """

    bundles: bool = True
    atomic: bool = True
    silent: bool = False
    obeys_queue: bool = True
    queues: int = 8
    deaf: frozenset[int] = frozenset()
    bare: frozenset[int] = frozenset()
    forgets_actions: bool = False
    at_probe: Callable[[], None] = lambda: None
    speed_kbps: int = 100_000
    meters: int = 100
    refuses: Callable[[Any], bool] = lambda _message: False
    table_size: int | None = None


@dataclass
class FakeDatapath(ProtocolDesc):
    """Stands in for Ryu's Datapath; ``deliver`` is where its answers go. ``sent`` notes the flow mods in force."""

    id: int
    deliver: Callable[[Any], None]
    behaviour: Behaviour = field(default_factory=Behaviour)
    ports: tuple[int, ...] = (1, 2)
    address: tuple[str, int] = ("10.9.0.1", 50_000)
    closed: bool = False

    def __post_init__(self) -> None:
        ProtocolDesc.__init__(self, version=ofp.OFP_VERSION)
        self.xid = 0
        self.table: dict[Key, Any] = {}
        self.messages: list[Any] = []
        self.meters: dict[int, Any] = {}
        self.down: set[int] = set()
        self.hands_on = True
        """Whether packets for the controller are sent to it, as without a request."""
        self._bundles: dict[int, list[Any]] = {}
        self._counts: dict[tuple[int, int], int] = {}
        self.received: dict[int, int] = {}
        """The bytes that ports have received."""

    def __hash__(self) -> int:
        return self.id

    def set_xid(self, message: Any) -> int:
        self.xid += 1
        message.set_xid(self.xid)
        return self.xid

    def send_msg(self, message: Any) -> bool:
        if message.xid is None:
            self.set_xid(message)
        message.serialize()
        for each in message.messages if isinstance(message, Batch) else [message]:
            read = as_read(self, each)
            self.messages.append(read)
            if not self.behaviour.silent:
                self._take(read)
        return True

    def close(self) -> None:
        self.closed = True

    def remove(self, *keys: Key, reason: int = ofp.OFPRR_DELETE) -> None:
        """Somebody else deletes rules, of all the keys or of these; the switch tells where a rule asks for it."""
        gone = [self.table.pop(key) for key in keys or tuple(self.table)]
        for m in gone:
            if m.flags & ofp.OFPFF_SEND_FLOW_REM:
                told = parser.OFPFlowRemoved(
                    self, cookie=m.cookie, priority=m.priority, reason=reason, table_id=m.table_id,
                    hard_timeout=m.hard_timeout, match=m.match,
                )  # fmt: skip
                told.xid = 0
                self.deliver(told)

    def receive(self, frame: bytes, in_port: int) -> None:
        """A frame comes in that only rules by its type match; what is for the controller is sent to it, if it asks."""
        kind = int.from_bytes(frame[12:14], "big")
        for held in self.table.values():
            outputs = [
                getattr(action, "port", None) for part in held.instructions for action in getattr(part, "actions", ())
            ]
            if held.match.get("eth_type") == kind and ofp.OFPP_CONTROLLER in outputs and self.hands_on:
                told = parser.OFPPacketIn(
                    self, buffer_id=ofp.OFP_NO_BUFFER, total_len=len(frame), reason=ofp.OFPR_ACTION,
                    table_id=held.table_id, cookie=held.cookie, match=parser.OFPMatch(in_port=in_port), data=frame,
                )  # fmt: skip
                told.xid = 0
                self.deliver(told)

    def flow_mods(self) -> list[Any]:
        """What was asked of the tables, but for the gate."""
        inner = [m.message if isinstance(m, parser.ONFBundleAddMsg) else m for m in self.messages]
        return [m for m in inner if isinstance(m, parser.OFPFlowMod) and not m.hard_timeout]

    # What the switch does.

    def _take(self, message: Any) -> None:
        match message:
            case parser.OFPFlowMod():
                self._flow_mod(message, message.xid)
            case parser.OFPBarrierRequest():
                self._reply(parser.OFPBarrierReply(self), message)
            case parser.OFPEchoRequest():
                self._reply(parser.OFPEchoReply(self, message.data), message)
            case parser.ONFBundleCtrlMsg():
                self._bundle(message)
            case parser.ONFBundleAddMsg():
                self._bundle_add(message)
            case parser.OFPPacketOut():
                self._packet_out(message)
            case parser.OFPSetAsync():
                self.hands_on = bool(message.packet_in_mask[0] & 1 << ofp.OFPR_ACTION)
            case parser.OFPAggregateStatsRequest():
                body = parser.OFPAggregateStats(0, 0, len(self._matching(message)))
                self._reply(parser.OFPAggregateStatsReply(self, body=body, flags=0), message)
            case parser.OFPFlowStatsRequest():
                self._flow_stats(message)
            case parser.OFPQueueStatsRequest():
                self._queue_stats(message)
            case parser.OFPPortStatsRequest():
                self._port_stats(message)
            case parser.OFPPortDescStatsRequest():
                self._port_desc(message)
            case parser.OFPMeterConfigStatsRequest():
                self._meter_config(message)
            case parser.OFPMeterMod():
                self._meter_mod(message)

    def _reply(self, reply: Any, to: Any) -> None:
        reply.xid = to.xid
        self.deliver(reply)

    def _error(self, kind: int, code: int, xid: int) -> None:
        self.deliver(_error(self, kind, code, xid))

    def _flow_mod(self, message: Any, xid: int) -> bool:
        if self._refuses(message):
            self._error(ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_OUT_PORT, xid)
            return False
        size = self.behaviour.table_size
        new = message.command == ofp.OFPFC_ADD and key_of(message) not in self.table
        if new and size is not None and len(self.table) >= size:
            self._error(ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL, xid)
            return False
        if message.command == ofp.OFPFC_ADD:
            self.table[key_of(message)] = message
        elif message.command == ofp.OFPFC_DELETE_STRICT:
            held = self.table.get(key_of(message))
            if held is not None and held.cookie & message.cookie_mask == message.cookie & message.cookie_mask:
                self.remove(key_of(message))
        return True

    def _refuses(self, message: Any) -> bool:
        if message.command != ofp.OFPFC_ADD:
            return False
        named = {_meter(part) for part in message.instructions} - {None}
        return bool(named - self.meters.keys()) or self.behaviour.refuses(message)

    def _bundle(self, message: Any) -> None:
        if not self.behaviour.bundles:
            self._error(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXPERIMENTER, message.xid)
            return
        if message.type == ofp.ONF_BCT_OPEN_REQUEST:
            self._bundles[message.bundle_id] = []
        inner = self._bundles.get(message.bundle_id, [])
        if message.type in (ofp.ONF_BCT_COMMIT_REQUEST, ofp.ONF_BCT_DISCARD_REQUEST):
            del self._bundles[message.bundle_id]
        if message.type == ofp.ONF_BCT_COMMIT_REQUEST:
            before = dict(self.table)
            done = [self._flow_mod(m, m.xid) for m in inner]
            if not all(done):
                if self.behaviour.atomic:
                    self.table = before
                self.deliver(_error(self, ofp.OFPET_EXPERIMENTER, ofp.ONFERR_ET_FAILED, message.xid))
                return
        reply = parser.ONFBundleCtrlMsg(self, message.bundle_id, message.type + 1, message.flags, [])
        self._reply(reply, message)

    def _bundle_add(self, message: Any) -> None:
        if self._refuses(message.message):
            self._error(ofp.OFPET_BAD_ACTION, ofp.OFPBAC_BAD_OUT_PORT, message.xid)
        else:
            self._bundles[message.bundle_id].append(message.message)

    def _packet_out(self, message: Any) -> None:
        self.behaviour.at_probe()
        queue = 0
        for action in message.actions:
            if isinstance(action, parser.OFPActionSetQueue) and self.behaviour.obeys_queue:
                queue = action.queue_id
            elif isinstance(action, parser.OFPActionOutput) and action.port not in self.down:
                queue = 0 if action.port in self.behaviour.deaf else queue
                self._counts[action.port, queue] = self._counts.get((action.port, queue), 0) + 1

    def _matching(self, request: Any) -> list[Any]:
        return [m for m in self.table.values() if m.cookie & request.cookie_mask == request.cookie]

    def _flow_stats(self, request: Any) -> None:
        body = [
            parser.OFPFlowStats(
                m.table_id,
                0,
                0,
                m.priority,
                0,
                m.hard_timeout,
                0,
                m.cookie,
                0,
                0,
                m.match,
                [] if self.behaviour.forgets_actions else m.instructions,
            )
            for m in self._matching(request)
        ]
        half = len(body) // 2
        first = parser.OFPFlowStatsReply(self, body=body[:half], flags=ofp.OFPMPF_REPLY_MORE)
        self._reply(first, request)
        self._reply(parser.OFPFlowStatsReply(self, body=body[half:], flags=0), request)

    def _queue_stats(self, request: Any) -> None:
        body = [
            parser.OFPQueueStats(port, queue, 100 * count, count, 0, 0, 0)
            for port in self.ports
            if port not in self.behaviour.bare
            for queue in range(self.behaviour.queues)
            for count in (self._counts.get((port, queue), 0),)
        ]
        self._reply(parser.OFPQueueStatsReply(self, body=body, flags=0), request)

    def _port_stats(self, request: Any) -> None:
        body = [
            parser.OFPPortStats(port, 0, 0, self.received.get(port, 0), *[0] * 11)
            for port in (*self.ports, ofp.OFPP_LOCAL)
        ]
        self._reply(parser.OFPPortStatsReply(self, body=body, flags=0), request)

    def _meter_config(self, request: Any) -> None:
        if not self.behaviour.meters:
            self._error(ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_MULTIPART, request.xid)
            return
        body = [parser.OFPMeterConfigStats(m.flags, m.meter_id, m.bands) for m in self.meters.values()]
        self._reply(parser.OFPMeterConfigStatsReply(self, body=body, flags=0), request)

    def _meter_mod(self, message: Any) -> None:
        if message.command == ofp.OFPMC_DELETE:
            self.delete_meter(message.meter_id)
        elif len(self.meters) >= self.behaviour.meters and message.meter_id not in self.meters:
            self._error(ofp.OFPET_METER_MOD_FAILED, ofp.OFPMMFC_OUT_OF_METERS, message.xid)
        else:
            self.meters[message.meter_id] = message

    def delete_meter(self, number: int) -> None:
        """Delete a meter, and the rules that name it."""
        self.meters.pop(number, None)
        using = [key for key, m in self.table.items() if any(_meter(part) == number for part in m.instructions)]
        if using:
            self.remove(*using)

    def _port_desc(self, request: Any) -> None:
        body = [
            parser.OFPPort(
                port, "02:00:00:00:00:00", f"eth{port}".encode(), 0, ofp.OFPPS_LINK_DOWN if port in self.down else 0,
                0, 0, 0, 0, self.behaviour.speed_kbps, 0,
            )
            for port in (*self.ports, ofp.OFPP_LOCAL)
        ]  # fmt: skip
        self._reply(parser.OFPPortDescStatsReply(self, body=body, flags=0), request)


def _meter(instruction: Any) -> int | None:
    return instruction.meter_id if isinstance(instruction, parser.OFPInstructionMeter) else None


def _error(datapath: Any, kind: int, code: int, xid: int) -> Any:
    if kind == ofp.OFPET_EXPERIMENTER:
        error = parser.OFPErrorMsg(datapath, type_=kind, data=b"", exp_type=code, experimenter=0x4F4E4600)
    else:
        error = parser.OFPErrorMsg(datapath, type_=kind, code=code, data=b"")
    error.xid = xid
    return error
