"""What the ports of a switch have received: what hosts and other switches have sent to it, in all classes together."""

from __future__ import annotations

from collections.abc import Mapping

from ryu.ofproto import ofproto_v1_3 as ofp
from ryu.ofproto import ofproto_v1_3_parser as parser

from controller.dataplane.channel import Channel, in_turns

NOT_COUNTED = 2**64 - 1
"""Stands for a counter that a switch does not have (OpenFlow 1.3.5, section 7.3.5.6)."""


def read_received(channel: Channel) -> Mapping[int, int]:
    """Returns the bytes that each port has received, by port number; nothing where the switch refuses.

    Raises SwitchGoneError.
    """
    replies, refusals = channel.ask(parser.OFPPortStatsRequest(channel.datapath, 0, ofp.OFPP_ANY))
    if refusals:
        return {}
    counters = ((stat.port_no, stat.rx_bytes) for reply in in_turns(replies) for stat in reply.body)
    return {port: count for port, count in counters if count != NOT_COUNTED}
