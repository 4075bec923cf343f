"""Requests to one switch and its answers, matched by transaction id.

Waiting blocks a green thread, never the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from typing import Any

from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.messages import Batch

SENT_AT_ONCE = 32
"""Hand so many messages at once to the connection: each time costs more than such a message.

Ryu lets other green threads run after 16 times, which is some 5 ms of rules.
"""

PARTS_AT_ONCE = 16
"""After so many parts of an answer, other green threads run. A part has 4 KiB at most, about 40 rules."""


class SwitchGoneError(Exception):
    """The switch is not connected any more, or did not answer in time; the message says which."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A message that the switch refused: its index in the batch, and the reason."""

    index: int
    reason: str


def in_turns(parts: Iterable[Any]) -> Iterator[Any]:
    """Yields the parts of an answer. Other green threads run after every PARTS_AT_ONCE of them."""
    for number, part in enumerate(parts, 1):
        yield part
        if number % PARTS_AT_ONCE == 0:
            hub.sleep(0)


class _Waiter:
    """Collects the answers to a batch of transaction ids until the last one is answered."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.replies: list[Any] = []
        self.errors: dict[int, Any] = {}
        self.done = hub.Event()

    def receive(self, message: Any) -> None:
        if isinstance(message, parser.OFPErrorMsg):
            # A switch refuses a message once. Repeated errors for one message are ignored.
            self.errors.setdefault(message.xid, message)
            ended = message.xid == self.last
        else:
            self.replies.append(message)
            ended = message.xid == self.last and not getattr(message, "flags", 0) & ofp.OFPMPF_REPLY_MORE
        if ended:
            self.done.set()


class Channel:
    """One connection to one switch, whose classes have the queues ``queue_numbers``; empty: in order from 1."""

    def __init__(self, datapath: Any, *, answer_seconds: float, queue_numbers: tuple[int, ...] = ()) -> None:
        self.datapath = datapath
        self.dpid: int = datapath.id
        self.queue_numbers = queue_numbers
        self.bundles: bool | None = None
        self.closed = False
        self._answer_seconds = answer_seconds
        self._waiters: dict[int, _Waiter] = {}
        self._bundle_id = 0

    def next_bundle(self) -> int:
        """Returns an id for a new bundle."""
        self._bundle_id = self._bundle_id % 0xFFFFFFFF + 1
        return self._bundle_id

    def deliver(self, message: Any) -> None:
        """Hand a message of the switch to the thread that waits for it. Other messages are dropped."""
        waiter = self._waiters.get(message.xid)
        if waiter is not None:
            waiter.receive(message)

    def close(self) -> None:
        """The connection has ended: wake all waiting threads."""
        self.closed = True
        for waiter in list(self._waiters.values()):
            waiter.done.set()

    def tell(self, message: Any) -> None:
        """Send a message that has no answer. Raises SwitchGoneError."""
        self.datapath.set_xid(message)
        self._send(message)

    def ask(self, request: Any) -> tuple[list[Any], list[Refusal]]:
        """Returns the parts of the answer to one request, and the refusal if there is one. Raises SwitchGoneError."""
        replies, refusals, _ = self._exchange([request], 1)
        return replies, refusals

    def settle(self, messages: Sequence[Any]) -> list[Refusal]:
        """Send ``messages`` and wait until the switch has processed all of them. Returns the refusals.

        Raises SwitchGoneError.
        """
        return self.settle_many(messages, len(messages))[0]

    def settle_many(
        self, messages: Iterable[Any], count: int, *, earlier: Sequence[int] = ()
    ) -> tuple[list[Refusal], list[int]]:
        """As ``settle``, for an iterable of ``count`` messages, each made just before it is sent.

        Returns the refusals and the transaction ids. ``earlier`` are the ids of messages that were sent before and may
        be refused only now, as those of a bundle at its commit; the indices of refusals count these first. Messages go
        to the switch SENT_AT_ONCE at a time. Raises SwitchGoneError.
        """
        barrier = (parser.OFPBarrierRequest(self.datapath),)
        _, refusals, xids = self._exchange(chain(messages, barrier), count + 1, earlier)
        return refusals, xids[:-1]

    def _exchange(
        self, messages: Iterable[Any], count: int, earlier: Sequence[int] = ()
    ) -> tuple[list[Any], list[Refusal], list[int]]:
        xids = list(earlier)
        waiter = _Waiter()
        self._waiters.update(dict.fromkeys(xids, waiter))
        # A long batch may take longer: each message adds a millisecond.
        patience = self._answer_seconds + count * 1e-3
        try:
            with hub.Timeout(patience):
                left = iter(messages)
                # No message is kept after it is sent: a large change has hundreds of thousands.
                while batch := list(islice(left, SENT_AT_ONCE)):
                    sent = [self.datapath.set_xid(message) for message in batch]
                    xids += sent
                    self._waiters.update(dict.fromkeys(sent, waiter))
                    if len(xids) == len(earlier) + count:
                        waiter.last = xids[-1]
                    self._send(batch[0] if len(batch) == 1 else Batch(self.datapath, batch))
                if not waiter.done.is_set():
                    waiter.done.wait()
        except hub.Timeout as error:
            raise SwitchGoneError(self._late()) from error
        finally:
            for xid in xids:
                del self._waiters[xid]
        if self.closed:
            raise SwitchGoneError(f"switch {self.dpid:016x} disconnected")
        index = {xid: i for i, xid in enumerate(xids)}
        return waiter.replies, [Refusal(index[error.xid], _why(error)) for error in waiter.errors.values()], xids

    def _send(self, message: Any) -> None:
        if self.closed or not self.datapath.send_msg(message):
            raise SwitchGoneError(f"switch {self.dpid:016x} disconnected")

    def _late(self) -> str:
        return f"switch {self.dpid:016x} did not answer within {self._answer_seconds:g} s"


_PLAIN = {
    (ofp.OFPET_FLOW_MOD_FAILED, ofp.OFPFMFC_TABLE_FULL): "its flow table is full",
    (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_BAD_EXPERIMENTER): "it does not know this extension",
    (ofp.OFPET_BAD_REQUEST, ofp.OFPBRC_IS_SLAVE): "another controller has made itself its master",
    (ofp.OFPET_EXPERIMENTER, ofp.ONFERR_ET_FAILED): "a part of the bundle failed",
}


def _why(error: Any) -> str:
    return _in_words(error.type, error.exp_type if error.type == ofp.OFPET_EXPERIMENTER else error.code)


@lru_cache(maxsize=100)
def _in_words(kind: int, code: int) -> str:
    """Returns an error's text. Cached, because Ryu's look-up is slow and a full table refuses rules by the thousand."""
    plain = _PLAIN.get((kind, code))
    if kind == ofp.OFPET_EXPERIMENTER:
        return plain or f"its own error {code}"
    name = ofp.ofp_error_code_to_str(kind, code)
    return f"{plain} ({name})" if plain else str(name)
