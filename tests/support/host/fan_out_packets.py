"""``python -m tests.support.host.fan_out_packets SEGMENTS BYTES`` prints the payload bytes of a fan-out's packets.

It is the last of a few, when TCP's window is no longer that of a new connection. The command changes the loopback
interface, so it belongs into a network namespace of its own.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.code_points import POOL_2
from host_reporter.nic.tree import htb_tree
from topologies import tools
from topologies.nodes import links_up

RATE_BPS = 10e6
CONNECTIONS, EARLIER = 4, 4
ADDRESS = ("127.0.0.1", 5000)
ALL_PROTOCOLS = 3
HEADERS = 14 + 20 + 32
_TCP = Path("/proc/sys/net/ipv4")


def main(segments: int, length: int) -> None:
    """Send fan-outs through a host's tree, and print the sizes of the last one's packets."""
    tools.run(["ip", "-batch", "-"], lines=["link set dev lo mtu 1500", *links_up({"lo": ()}, segments)])
    (_TCP / "tcp_min_tso_segs").write_text(str(segments))
    (_TCP / "tcp_congestion_control").write_text("reno")
    tools.run(["tc", "-batch", "-"], lines=htb_tree("lo", RATE_BPS, POOL_2, 0.01, 0.1))
    with socket.create_server(ADDRESS) as listener:
        workers = [socket.create_connection(ADDRESS) for _ in range(CONNECTIONS)]
        servers = [listener.accept()[0] for _ in workers]
    for _ in range(EARLIER):
        _fan_out(servers, workers, length)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_PROTOCOLS)) as tap:
        tap.bind(("lo", 0))
        _fan_out(servers, workers, length)
        json.dump([size - HEADERS for size in _sizes(tap) if size > HEADERS], sys.stdout)


def _fan_out(servers: Sequence[socket.socket], workers: Sequence[socket.socket], length: int) -> None:
    """Send so many bytes from each server to its worker at once, and wait until all have come."""
    for server in servers:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server.sendall(bytes(length))
    for worker in workers:
        _read(worker, length)


def _read(worker: socket.socket, length: int) -> None:
    while length:
        length -= len(worker.recv(length))


def _sizes(tap: socket.socket) -> Iterator[int]:
    """Yields the size of each packet that left through the interface."""
    tap.setblocking(False)
    while True:
        try:
            packet, source = tap.recvfrom(2**17)
        except BlockingIOError:
            return
        if source[2] == socket.PACKET_OUTGOING:
            yield len(packet)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
