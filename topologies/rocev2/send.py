"""``python -m topologies.rocev2.send ADDRESS --rate BPS``: sends RoCEv2 packets to one host at a rate.

The kernel sends them as UDP, and no answer is waited for, so a stream presses on a link as long as it runs. What a real
network interface would do at a loss or a notice of congestion is not imitated.
"""

from __future__ import annotations

import argparse
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from controller.model import BITS_PER_BYTE, ROCEV2_PORT
from topologies.rocev2.packets import Address, Ends, datagram

DEFAULT_DATA_BYTES = 1024
"""The largest size of InfiniBand's packets that fits into an Ethernet frame of 1,500 bytes."""
DEFAULT_SOURCE_PORT = 49152
"""RoCEv2 tells queue pairs apart by source ports from here on, so that networks spread them over their paths."""
NIC_DSCP = 26
"""The DSCP that network interfaces give RoCEv2 unless they are told another one."""
_UDP_AND_IPV4_BYTES, _UDP_AND_IPV6_BYTES = 28, 48
_TICK_SECONDS = 0.002
_LATE_SECONDS = 0.01
"""A sender that was late makes up for no more than this."""
_IP_MTU_DISCOVER, _IPV6_MTU_DISCOVER, _DISCOVER = 10, 23, 2


@dataclass(frozen=True, slots=True)
class Stream:
    """Packets to one address. ``rate_bps`` is that of the IP packets; ``seconds`` of None: until the process ends."""

    to: Address
    rate_bps: float
    dscp: int = NIC_DSCP
    source_port: int = DEFAULT_SOURCE_PORT
    queue_pair: int = 1
    data_bytes: int = DEFAULT_DATA_BYTES
    seconds: float | None = None


def send(stream: Stream) -> int:
    """Send a stream, and return how many packets it had. Raises OSError."""
    with _socket(stream) as out:
        source = ip_address(out.getsockname()[0])
        ends, data = Ends(source, stream.to, stream.source_port), bytes(stream.data_bytes)
        to = (str(stream.to), ROCEV2_PORT)

        def send_one(number: int) -> int:
            return out.sendto(datagram(ends, stream.queue_pair, number, data), to)

        return _paced(send_one, stream)


def _paced(send_one: Callable[[int], int], stream: Stream) -> int:
    """Send packets at the stream's rate. A link that is slower holds the sender up."""
    headers = _UDP_AND_IPV4_BYTES if stream.to.version == 4 else _UDP_AND_IPV6_BYTES
    began = last = time.monotonic()
    until = float("inf") if stream.seconds is None else began + stream.seconds
    bytes_a_second = stream.rate_bps / BITS_PER_BYTE
    allowed, number = 0.0, 0
    while last < until:
        now = time.monotonic()
        allowed, last = min(allowed + (now - last) * bytes_a_second, bytes_a_second * _LATE_SECONDS + headers), now
        while allowed > 0:
            allowed -= send_one(number) + headers
            number += 1
        time.sleep(_TICK_SECONDS)
    return number


def _socket(stream: Stream) -> socket.socket:
    """Returns a socket that sends from the address by which the receiver is reached. It has no peer."""
    is_ipv4 = stream.to.version == 4
    family = socket.AF_INET if is_ipv4 else socket.AF_INET6
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((str(stream.to), ROCEV2_PORT))
        source = probe.getsockname()[0]
    out = socket.socket(family, socket.SOCK_DGRAM)
    if is_ipv4:
        out.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, stream.dscp << 2)
        out.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _DISCOVER)
    else:
        out.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, stream.dscp << 2)
        out.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _DISCOVER)
    # Nothing comes back, so several streams may have the same port.
    out.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    out.bind((source, stream.source_port))
    return out


def main(arguments: Sequence[str] | None = None) -> None:
    """Send the stream that the command line describes."""
    parser = argparse.ArgumentParser(prog="python -m topologies.rocev2.send", description=__doc__)
    parser.add_argument("to", type=ip_address, metavar="ADDRESS", help="the receiver's IPv4 or IPv6 address")
    parser.add_argument("--rate", dest="rate_bps", type=float, required=True, help="bit/s of the IP packets")
    parser.add_argument("--dscp", type=int, default=NIC_DSCP, choices=range(64), metavar="DSCP", help="0 to 63")
    parser.add_argument("--source-port", type=int, default=DEFAULT_SOURCE_PORT, help="the UDP port that sends")
    parser.add_argument("--queue-pair", type=int, default=1, help="the receiver's queue pair")
    parser.add_argument("--data-bytes", type=int, default=DEFAULT_DATA_BYTES, help="the data of a packet")
    parser.add_argument("--seconds", type=float, help="how long it sends; without it until the process ends")
    send(Stream(**vars(parser.parse_args(arguments))))


if __name__ == "__main__":
    main()
