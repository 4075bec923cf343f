"""One burst of a sender to several receivers over TCP, each byte timed where it arrives.

A test starts it inside hosts' namespaces: ``receive PORT`` prints ``ready``, and at the end of its connection one JSON
list of [seconds, bytes so far]; ``send PORT BYTES ADDRESS...`` waits for a line on its input, sends so many bytes to
each address, and prints the moment at which it began. All times are of the machine's monotonic clock.
"""

from __future__ import annotations

import json
import socket
import sys
import time


def receive(port: int) -> None:
    arrivals: list[tuple[float, int]] = []
    total = 0
    with socket.create_server(("0.0.0.0", port)) as server:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        peer, _address = server.accept()
        with peer:
            while piece := peer.recv(65536):
                total += len(piece)
                arrivals.append((time.monotonic(), total))
    sys.stdout.write(json.dumps(arrivals) + "\n")


def send(port: int, count: int, addresses: list[str]) -> None:
    peers = [socket.create_connection((address, port)) for address in addresses]
    for peer in peers:
        # What is sent must not wait for the program: all of it is in the kernel when the first packet leaves.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * count)
    payload = bytes(count)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    began = time.monotonic()
    for peer in peers:
        peer.sendall(payload)
    for peer in peers:
        peer.close()
    sys.stdout.write(f"{began}\n")


if __name__ == "__main__":
    if sys.argv[1] == "receive":
        receive(int(sys.argv[2]))
    else:
        send(int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
