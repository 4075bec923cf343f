"""A host with a network card of its own: a cable of two ends, to a peer in another network namespace."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from evaluation.bench.support.hosts.own_namespace import own_namespace
from evaluation.bench.support.waiting import wait_until

OWN, PEER = "10.78.0.1", "10.78.0.2"
OWN_IPV6, PEER_IPV6 = "fd78::1", "fd78::2"
PORT = 7007
INTERFACE = "eth0"

# Takes all TCP and UDP that comes; with "blast" on its input it sends UDP until the next line.
_PEER = """
import select, socket, sys, threading
server = socket.create_server(("::", int(sys.argv[3])), backlog=64, family=socket.AF_INET6, dualstack_ipv6=True)
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind((sys.argv[1], int(sys.argv[3])))
def drain(read):
    while read(65536):
        pass
def accept():
    while True:
        threading.Thread(target=drain, args=(server.accept()[0].recv,), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
threading.Thread(target=drain, args=(datagrams.recv,), daemon=True).start()
print("ready", flush=True)
for line in sys.stdin:
    while line.strip() == "blast" and not select.select([sys.stdin], [], [], 0.001)[0]:
        for _ in range(20):
            datagrams.sendto(bytes(1400), (sys.argv[2], int(sys.argv[3])))
    print("quiet", flush=True)
"""


class Peer:
    """The program at the other end of the cable."""

    def __init__(self, prefix: tuple[str, ...]) -> None:
        self._process = subprocess.Popen(
            [*prefix, sys.executable, "-S", "-c", _PEER, PEER, OWN, str(PORT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        assert self._output.readline() == "ready\n"

    @contextlib.contextmanager
    def blasting(self) -> Iterator[None]:
        """It sends UDP as long as the context lasts."""
        self._say("blast")
        yield
        self._say("quiet")
        assert self._output.readline() == "quiet\n"

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._input.close()
        self._output.close()

    def _say(self, word: str) -> None:
        self._input.write(f"{word}\n")
        self._input.flush()


@contextlib.contextmanager
def cabled_host() -> Iterator[Peer]:
    """Be on a host whose eth0 has the addresses OWN and OWN_IPV6, and leads to a peer with PEER and PEER_IPV6."""
    with own_namespace(), subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE) as other:
        try:
            here = Path("/proc/thread-self/ns/net").readlink()
            there = Path(f"/proc/{other.pid}/ns/net")
            wait_until(lambda: there.readlink() != here, 10, what="the peer's namespace")
            inside = ("nsenter", f"--net={there}")
            _run("ip", "link", "add", INTERFACE, "type", "veth", "peer", "name", INTERFACE, "netns", str(other.pid))
            for prefix, address, ipv6 in (((), OWN, OWN_IPV6), (inside, PEER, PEER_IPV6)):
                _run(*prefix, "ip", "address", "add", f"{address}/24", "dev", INTERFACE)
                _run(*prefix, "ip", "address", "add", f"{ipv6}/64", "dev", INTERFACE, "nodad")
                _run(*prefix, "ip", "link", "set", INTERFACE, "up")
            with contextlib.closing(Peer(inside)) as peer:
                yield peer
        finally:
            assert other.stdin is not None
            other.stdin.close()


def send_tcp(seconds: float) -> int:
    """Send to the peer as fast as it goes, in long pieces and short ones. Returns how many bytes."""
    end, sent = time.monotonic() + seconds, 0
    with socket.create_connection((PEER, PORT), 10) as bulk, socket.create_connection((PEER, PORT), 10) as small:
        small.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while time.monotonic() < end:
            bulk.sendall(bytes(65_536))
            small.sendall(b"x")
            sent += 65_537
    return sent


def send_udp(seconds: float, is_over: threading.Event | None = None) -> None:
    """Send datagrams to the peer for some seconds, or until it is over."""
    end, is_over = time.monotonic() + seconds, is_over or threading.Event()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        while time.monotonic() < end and not is_over.is_set():
            for _ in range(20):
                datagrams.sendto(bytes(1400), (PEER, PORT))
            time.sleep(0.001)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
