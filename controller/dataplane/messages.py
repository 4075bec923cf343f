"""OpenFlow messages that are bytes already, but for their transaction ids. Ryu sends them as it sends its own."""

from __future__ import annotations

from struct import Struct
from typing import Any

from ryu.ofproto import ofproto_common
from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto.ofproto_parser import MsgBase

_HEADER = Struct("!BBHI")
_IN_BUNDLE = Struct("!BBHIIII2xH")


class FlowMod(MsgBase):
    """A change of one rule. ``body`` is all of the message behind its header."""

    cls_msg_type = ofp.OFPT_FLOW_MOD

    def __init__(self, datapath: Any, body: bytes) -> None:
        super().__init__(datapath)
        self.body = body

    def with_header(self, xid: int) -> bytes:
        """Returns the whole message with this transaction id."""
        return _HEADER.pack(ofp.OFP_VERSION, ofp.OFPT_FLOW_MOD, _HEADER.size + len(self.body), xid) + self.body

    def serialize(self) -> None:
        """Make ``buf``, which is sent."""
        self.buf = self.with_header(self.xid)


class InBundle(MsgBase):
    """A message that is put into a bundle (ONF's extension EXT-230). ``flags`` are those of the bundle."""

    cls_msg_type = ofp.OFPT_EXPERIMENTER

    def __init__(self, datapath: Any, bundle_id: int, flags: int, message: FlowMod) -> None:
        super().__init__(datapath)
        self._bundle_id = bundle_id
        self._flags = flags
        self._message = message

    def serialize(self) -> None:
        """Make ``buf``, which is sent. Both messages have the same transaction id, as the extension asks for."""
        inner = self._message.with_header(self.xid)
        head = _IN_BUNDLE.pack(
            ofp.OFP_VERSION,
            ofp.OFPT_EXPERIMENTER,
            _IN_BUNDLE.size + len(inner),
            self.xid,
            ofproto_common.ONF_EXPERIMENTER_ID,
            ofp.ONF_ET_BUNDLE_ADD_MESSAGE,
            self._bundle_id,
            self._flags,
        )
        self.buf = head + inner


class Batch(MsgBase):
    """Messages with their transaction ids, in one piece for the connection."""

    def __init__(self, datapath: Any, messages: list[MsgBase]) -> None:
        super().__init__(datapath)
        self.messages = messages
        self.xid = messages[-1].xid

    def serialize(self) -> None:
        """Make ``buf``, which is sent."""
        for message in self.messages:
            message.serialize()
        self.buf = b"".join(message.buf for message in self.messages)
