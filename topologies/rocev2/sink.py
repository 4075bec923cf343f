"""``python -m topologies.rocev2.sink ADDRESS``: counts the RoCEv2 packets that come to an address, by their sources.

It prints a line of JSON at each interval until it is ended: ``{"time": SECONDS, "sources": {ADDRESS: COUNTS}}``. The
time is that of ``time.monotonic``, and all counts are since the start.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any

from controller.model import ROCEV2_PORT
from topologies.rocev2.packets import Address, Ends, is_whole

DEFAULT_INTERVAL_SECONDS = 0.1
MOST_SOURCES = 1024
"""Packets of further sources are not counted."""
_DATAGRAM_BYTES = 9000
_AT_ONCE = 256
"""Look at the time after so many packets."""
_BUFFER_BYTES = 1 << 22
_SO_RCVBUFFORCE = 33
_IP_RECVTOS, _IPV6_RECVTCLASS = 13, 66


@dataclass(slots=True)
class Counts:
    """What has come from a source: packets, bytes of UDP data, packets by DSCP, and those whose CRC is wrong."""

    packets: int = 0
    bytes: int = 0
    damaged: int = 0
    dscps: Counter[int] = field(default_factory=Counter)

    def add(self, datagram_bytes: int, dscp: int, *, whole: bool) -> None:
        """Count a packet."""
        self.packets += 1
        self.bytes += datagram_bytes
        self.damaged += not whole
        self.dscps[dscp] += 1


class Sink:
    """Receives the packets to an address. Raises OSError where another program does."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self.by_source: dict[str, Counts] = {}
        is_ipv4 = address.version == 4
        self._socket = socket.socket(socket.AF_INET if is_ipv4 else socket.AF_INET6, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        with contextlib.suppress(PermissionError):
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _BUFFER_BYTES)
        if is_ipv4:
            self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTOS, 1)
        else:
            self._socket.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVTCLASS, 1)
        try:
            self._socket.bind((str(address), ROCEV2_PORT))
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        """Receive no more."""
        self._socket.close()

    def receive(self, seconds: float) -> None:
        """Count packets for some time."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._socket], [], [], left)[0]:
                self._drain()

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                content, ancillary, _, (source, port, *_) = self._socket.recvmsg(_DATAGRAM_BYTES, 64)
                if source in self.by_source or len(self.by_source) < MOST_SOURCES:
                    whole = is_whole(Ends(ip_address(source), self._address, port), content)
                    self.by_source.setdefault(source, Counts()).add(len(content), _dscp(ancillary), whole=whole)


def _dscp(ancillary: Sequence[tuple[int, int, bytes]]) -> int:
    """Returns the DSCP in what the kernel tells beside a datagram; 0 where it tells none."""
    traffic_class = next((int.from_bytes(data, sys.byteorder) for _, _, data in ancillary), 0)
    return traffic_class >> 2


def lines(sink: Sink, interval: float) -> Iterator[str]:
    """Yields the counts at the start, and then at each interval, for ever."""
    while True:
        yield json.dumps({"time": time.monotonic(), "sources": _document(sink.by_source)})
        sink.receive(interval)


def _document(by_source: Mapping[str, Counts]) -> dict[str, Any]:
    return {
        source: {
            "packets": counts.packets,
            "bytes": counts.bytes,
            "damaged": counts.damaged,
            "dscps": dict(sorted(counts.dscps.items())),
        }
        for source, counts in by_source.items()
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Count at the address that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m topologies.rocev2.sink", description=__doc__)
    parser.add_argument("address", type=ip_address, metavar="ADDRESS", help="this host's IPv4 or IPv6 address")
    parser.add_argument("--interval", type=float, default=DEFAULT_INTERVAL_SECONDS, help="seconds between two lines")
    given = parser.parse_args(arguments)
    sink = Sink(given.address)
    with contextlib.closing(sink):
        for line in lines(sink, given.interval):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
