"""Two network namespaces joined by a cable: a sender ``a`` and a receiver ``b``, made and removed by the tests."""

from __future__ import annotations

import contextlib
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

SENDER = "10.77.0.1"
RECEIVER = "10.77.0.2"

# One thread a flow, one process for all; what each receiver got in the window is printed at the end.
_SINK = """
import json, socket, sys, threading, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
ports, start, stop = [int(p) for p in sys.argv[4:]], float(sys.argv[2]), float(sys.argv[3])
got = {port: 0 for port in ports}
listening = [socket.create_server((sys.argv[1], port), family=family) for port in ports]
begun = time.monotonic()
def take(server, port):
    peer, _ = server.accept()
    while data := peer.recv(65536):
        if start < time.monotonic() - begun < stop:
            got[port] += len(data)
for server, port in zip(listening, ports):
    threading.Thread(target=take, args=(server, port), daemon=True).start()
print("ready", flush=True)
time.sleep(stop)
print(json.dumps(got), flush=True)
"""
_SOURCE = """
import socket, sys, threading, time
address, seconds = sys.argv[1], float(sys.argv[2])
family, option = socket.AF_INET, (socket.IPPROTO_IP, socket.IP_TOS)
if ":" in address:
    family, option = socket.AF_INET6, (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
def send(port, dscp):
    with socket.socket(family) as peer:
        peer.setsockopt(*option, dscp << 2)
        peer.connect((address, port))
        while True:
            peer.sendall(bytes(65536))
for flow in sys.argv[3:]:
    port, dscp = flow.split(":")
    threading.Thread(target=send, args=(int(port), int(dscp)), daemon=True).start()
time.sleep(seconds)
"""


@dataclass(frozen=True)
class TwoHosts:
    """The namespaces; ``interface`` is the sender's end of the cable."""

    sender: str
    receiver: str
    interface: str

    def command(self, where: str, *command: str) -> list[str]:
        return ["ip", "netns", "exec", where, *command]

    def run(self, where: str, *command: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(where, *command), input=text, capture_output=True, text=True, check=False, timeout=60
        )

    def bytes_by_port(self, flows: dict[int, int], *, start: float, stop: float, address: str = RECEIVER) -> TrafficRun:
        """TCP as fast as it goes to each port, with a DSCP each; counted between two moments in seconds."""
        return TrafficRun(self, flows, start, stop, address)


class TrafficRun:
    """A run of traffic under way, as a context; ``result()`` waits for its end."""

    def __init__(self, hosts: TwoHosts, flows: dict[int, int], start: float, stop: float, address: str) -> None:
        self._stack = contextlib.ExitStack()
        self._hosts, self._flows, self._start, self._stop, self._address = hosts, flows, start, stop, address

    def __enter__(self) -> TrafficRun:
        ports = [str(port) for port in self._flows]
        python = [sys.executable, "-c"]
        self._sink = self._popen(
            self._hosts.receiver, *python, _SINK, self._address, str(self._start), str(self._stop), *ports, output=True
        )
        assert self._sink.stdout is not None
        assert self._sink.stdout.readline() == "ready\n"
        pairs = [f"{port}:{dscp}" for port, dscp in self._flows.items()]
        self._popen(self._hosts.sender, *python, _SOURCE, self._address, str(self._stop + 1), *pairs)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def result(self) -> dict[int, int]:
        assert self._sink.stdout is not None
        return {int(port): count for port, count in json.loads(self._sink.stdout.readline()).items()}

    def _popen(self, where: str, *command: str, output: bool = False) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            self._hosts.command(where, *command), stdout=subprocess.PIPE if output else None, text=True
        )

        def end() -> None:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

        self._stack.callback(end)
        return process


@contextlib.contextmanager
def two_hosts() -> Iterator[TwoHosts]:
    """Make the namespaces, take them away afterwards. The cable vanishes with them."""
    mark = secrets.token_hex(4)
    hosts = TwoHosts(f"ty-a{mark}", f"ty-b{mark}", f"tya{mark}")
    peer = f"tyb{mark}"

    def ip(*arguments: str) -> None:
        subprocess.run(["ip", *arguments], check=True, capture_output=True)

    with contextlib.ExitStack() as stack:
        for name in (hosts.sender, hosts.receiver):
            ip("netns", "add", name)
            stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False, capture_output=True)
        ends = ["type", "veth", "peer", "name", peer, "netns", hosts.receiver]
        ip("link", "add", hosts.interface, "netns", hosts.sender, *ends)
        for name, interface, address in ((hosts.sender, hosts.interface, SENDER), (hosts.receiver, peer, RECEIVER)):
            ip("-n", name, "address", "add", f"{address}/24", "dev", interface)
            ip("-n", name, "link", "set", interface, "up")
        yield hosts
