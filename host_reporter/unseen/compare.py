"""How many bytes a second interfaces have carried that no TCP socket explains, between two samples. Pure.

An interface's bytes have headers and retransmissions, and acknowledgements that no socket counts as bytes. So a part of
them is always explained: ``HEADER_BYTES`` of each packet, and ``EXPLAINED`` times what the sockets have carried. That
is more than TCP needs, so that TCP is never taken for something else: what is found is a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

from host_reporter.nic.netdev import Count
from host_reporter.unseen.counts import RECEIVED, SENT, Carried, Sample

HEADER_BYTES = 200
"""Take this much of each packet for headers. Ethernet with two VLAN tags and a checksum (26), IPv6 (40) and the longest
header of TCP (60) are 126 bytes; a tunnel by VXLAN over IPv6 adds 70 (RFC 7348)."""

EXPLAINED = 1.1
"""Where an interface cuts packets itself, it may count one packet for many, whose headers are 5 % of 1,448 bytes. The
rest is for retransmissions."""


class Rate(NamedTuple):
    """Bytes a second: all that an interface has carried in a direction, and those that nothing explains."""

    carried: float
    unseen: float


class Rates(NamedTuple):
    """The rates of both directions."""

    sent: Rate
    received: Rate


def compare(first: Sample, last: Sample) -> dict[str, Rates] | None:
    """Returns the rates by interface or port between two samples; None: nothing can be compared.

    That is where ``more_carried`` has nothing, and where no time has passed.
    """
    seconds = last.time - first.time
    carried = more_carried(first, last)
    if carried is None or seconds <= 0:
        return None
    unseen = [_unseen(first, last, way) for way in (SENT, RECEIVED)]
    return {
        name: Rates(*(Rate(count[way] / seconds, unseen[way].get(name, 0.0) / seconds) for way in (SENT, RECEIVED)))
        for name, count in carried.items()
    }


def more_carried(first: Sample, last: Sample) -> dict[str, Count] | None:
    """Returns the bytes by interface or port between two samples.

    None: an interface has come or gone, or was made anew, so that its count went back.
    """
    if first.netdevs.keys() != last.netdevs.keys() or first.ports.keys() != last.ports.keys():
        return None
    carried = {name: last.netdevs[name].bytes.minus(before.bytes) for name, before in first.netdevs.items()}
    carried |= {name: last.ports[name].bytes.minus(before.bytes) for name, before in first.ports.items()}
    return carried if all(count.is_possible for count in carried.values()) else None


def _unseen(first: Sample, last: Sample, way: int) -> dict[str, float]:
    """Returns the bytes of one direction that nothing explains, by interface or port."""
    rest = {name: _rest(before, last.netdevs[name], way) for name, before in first.netdevs.items()}
    # A socket's bytes may leave by another interface than the one with its address. So the sum decides how much there
    # is, and each interface's own rest where it is.
    total = sum(rest.values()) - EXPLAINED * _more(first.elsewhere, last.elsewhere, way)
    positive = {name: max(amount, 0.0) for name, amount in rest.items()}
    most = sum(positive.values())
    share = min(max(total, 0.0) / most, 1.0) if most > 0 else 0.0
    found = {name: amount * share for name, amount in positive.items()}
    return found | {name: max(_rest(then, last.ports[name], way), 0.0) for name, then in first.ports.items()}


def _rest(then: Carried, now: Carried, way: int) -> float:
    """Returns the bytes of an interface or port that its packets' headers and what is known of it do not explain."""
    headers = HEADER_BYTES * _more(then.packets, now.packets, way)
    return _more(then.bytes, now.bytes, way) - headers - EXPLAINED * _more(then.explained, now.explained, way)


def _more(then: Count, now: Count, way: int) -> int:
    return max(now[way] - then[way], 0)
