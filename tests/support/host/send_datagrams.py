"""``python -m tests.support.host.send_datagrams ADDRESS BYTES CLASS:COUNT ...``: datagrams with a traffic class.

The arguments after ``BYTES``, the size of a datagram's payload, give traffic classes (0 to 255: DSCP and ECN), and how
many datagrams have each.
"""

from __future__ import annotations

import socket
import sys

PORT = 9
"""The port of the service that discards what it gets (RFC 863)."""


def main(address: str, size: str, *flows: str) -> None:
    """Send them."""
    family, option = socket.AF_INET, (socket.IPPROTO_IP, socket.IP_TOS)
    if ":" in address:
        family, option = socket.AF_INET6, (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
    for flow in flows:
        traffic_class, count = map(int, flow.split(":"))
        with socket.socket(family, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(*option, traffic_class)
            for _ in range(count):
                sender.sendto(bytes(int(size)), (address, PORT))


if __name__ == "__main__":
    main(*sys.argv[1:])
