"""The entries of flow statistics, each read once.

A look at a switch's rules brings the same entries again and again, and only their counters and times differ. To parse
them each time was most of a look's cost. Nothing of ours reads the counters and times, which are those of the first
reading.
"""

from __future__ import annotations

from typing import Any

from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.peers import message_shapes as shapes

MOST = 8192
"""Remember so many entries. One takes about 3 kB."""

_remembered: dict[bytes, Any] = {}


class RememberedFlowStats:
    """Stands in for Ryu's class where Ryu's parser reads the entries of an answer."""

    @classmethod
    def parser(cls, data: bytes, offset: int) -> Any:
        """Returns the entry at ``offset`` as Ryu's class: the same object for an entry that says the same."""
        key = shapes.without_counters(data, offset)
        entry = _remembered.get(key)
        if entry is None:
            entry = parser.OFPFlowStats.parser(data, offset)
            if len(_remembered) >= MOST:
                _remembered.clear()
            _remembered[key] = entry
        return entry


def install() -> None:
    """Have Ryu's parser use it."""
    parser.OFPFlowStatsReply.cls_stats_body_cls = RememberedFlowStats
