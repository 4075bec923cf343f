"""The check of what peers send with Ryu's own parser and handlers behind it, as in the controller, without a socket."""

from __future__ import annotations

import gc
import signal
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ryu.base import app_manager  # noqa: F401 - Ryu's modules import each other in a ring, which begins here
from ryu.controller import ofp_event
from ryu.controller.controller import Datapath
from ryu.controller.handler import register_instance
from ryu.controller.ofp_handler import OFPHandler
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.peers.message_stream import MessageStream, RefusedError
from evaluation.bench.support.openflow.messages import Case, Session, message, parts, parts_request

HANG_SECONDS = 5.0
"""Processor time after which one message counts as one that hangs the reader."""
FEATURES = message(ofp.OFPT_FEATURES_REPLY, bytes(7) + b"\x01" + bytes(16), xid=5)


class HangError(Exception):
    """A message that is never read to its end."""


class _Socket:
    def setsockopt(self, *_arguments: Any) -> None:
        pass

    def settimeout(self, _seconds: float) -> None:
        pass


class RyuBehind:
    """Ryu's parser and its handlers. What they raise is raised here, which Ryu itself logs with a traceback."""

    def __init__(self) -> None:
        self._datapath = Datapath(_Socket(), ("192.0.2.1", 50_000))
        self._datapath.ports = {}
        self._datapath.send_msg = lambda *_arguments, **_options: True
        self._handlers = OFPHandler()
        register_instance(self._handlers)
        self._handlers.unregister_handler(ofp_event.EventOFPErrorMsg, self._handlers.error_msg_handler)

    def read(self, data: bytes) -> None:
        """Parse one message and handle it."""
        version, kind, length, xid = (
            data[0],
            data[1],
            int.from_bytes(data[2:4], "big"),
            int.from_bytes(data[4:8], "big"),
        )
        event = ofp_event.ofp_msg_to_ev(parser.msg_parser(self._datapath, version, kind, length, xid, bytearray(data)))
        for handler in self._handlers.get_handlers(event):
            handler(event)
        self._datapath.ports.clear()


def ready_stream() -> MessageStream:
    """A stream whose peer has become a switch."""
    stream = MessageStream()
    for request, answer in (
        (message(ofp.OFPT_HELLO, b""), message(ofp.OFPT_HELLO, b"")),
        (message(ofp.OFPT_FEATURES_REQUEST, b"", xid=5), FEATURES),
        (parts_request(ofp.OFPMP_PORT_DESC, xid=6), parts(ofp.OFPMP_PORT_DESC, b"", xid=6)),
    ):
        stream.sent(request)
        stream.feed(answer)
        assert stream.next_step() is not None
    assert stream.is_ready
    return stream


@dataclass
class Tally:
    """What became of many messages. Times are of the processor, in seconds."""

    outcomes: Counter[str] = field(default_factory=Counter)
    check_seconds: float = 0.0
    parse_seconds: float = 0.0
    worst_check: float = 0.0
    worst_parse: float = 0.0
    parsed: int = 0
    faults: list[str] = field(default_factory=list)


class Reader:
    """Reads cases and sessions, and keeps the tally. ``tally.faults`` names what hung or was raised by Ryu."""

    def __init__(self, patience: float = HANG_SECONDS) -> None:
        self.tally = Tally()
        self._patience = patience
        self._ryu = RyuBehind()

    def read(self, case: Case) -> str:
        """What becomes of a case: "passed", "answered", "refused" or "dropped"."""
        stream = MessageStream() if case.early else ready_stream()
        if case.asked is not None:
            stream.sent(case.asked)
        outcome = self._read(stream, case.data)
        self.tally.outcomes[outcome] += 1
        return outcome

    def replay(self, session: Session) -> list[str]:
        """What becomes of each message of a switch in a session."""
        stream = MessageStream()
        outcomes = []
        for kind, data in session:
            if kind == "asks":
                stream.sent(data)
            else:
                outcomes.append(self._read(stream, data))
        return outcomes

    def _read(self, stream: MessageStream, data: bytes) -> str:
        begin = time.thread_time()
        delivered: list[bytes] = []
        answered = False
        outcome = ""
        try:
            with _bounded(self._patience):
                stream.feed(data)
                while (step := stream.next_step()) is not None:
                    answered |= bool(step.reply)
                    if step.deliver:
                        delivered.append(step.deliver)
        except RefusedError:
            outcome = "refused"
        except Exception as error:  # any other is a fault of the check, and is told with its message
            self.tally.faults.append(f"check: {type(error).__name__}: {error}: {data.hex()}")
        checked = time.thread_time()
        for piece in delivered:
            self._parse(piece)
        self.tally.check_seconds += checked - begin
        self.tally.worst_check = max(self.tally.worst_check, checked - begin)
        return outcome or ("passed" if delivered else "answered" if answered else "dropped")

    def _parse(self, piece: bytes) -> None:
        begin = time.thread_time()
        try:
            with _bounded(self._patience):
                self._ryu.read(piece)
        except Exception as error:  # what passed the check and is raised all the same
            self.tally.faults.append(f"Ryu: {type(error).__name__}: {error}: {piece.hex()}")
        took = time.thread_time() - begin
        self.tally.parsed += 1
        self.tally.parse_seconds += took
        self.tally.worst_parse = max(self.tally.worst_parse, took)


def faults_without_check(cases: Iterable[Case]) -> list[str]:
    """What hangs Ryu or makes it raise, of the messages with the version of OpenFlow 1.3, where nothing checks them."""
    reader = Reader(patience=0.02)
    gc.disable()  # what is raised to stop a hang would be lost in a finalizer
    try:
        for case in cases:
            if len(case.data) >= 8 and case.data[0] == ofp.OFP_VERSION:
                reader._parse(case.data[: int.from_bytes(case.data[2:4], "big")])
    finally:
        gc.enable()
    return reader.tally.faults


@contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Raises HangError in what takes too much of the processor."""

    def stop(_number: int, _frame: object) -> None:
        raise HangError(f"more than {seconds:g} s of the processor")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
