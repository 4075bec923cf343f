"""Two network namespaces joined by a cable: a sender ``a`` and a receiver ``b``, made and removed by the tests."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

SENDER = "10.77.0.1"
RECEIVER = "10.77.0.2"

# One thread a flow, one process for all. The window begins when every flow has its connection, however long their
# sender takes to start; what each receiver got in it is printed at the end.
_SINK = """
import json, socket, sys, threading, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
ports, start, stop = [int(p) for p in sys.argv[4:]], float(sys.argv[2]), float(sys.argv[3])
got = {port: 0 for port in ports}
listening = [socket.create_server((sys.argv[1], port), family=family) for port in ports]
connected, begin = threading.Semaphore(0), float("inf")
def take(server, port):
    peer, _ = server.accept()
    connected.release()
    while data := peer.recv(65536):
        if begin < time.monotonic() < begin + stop - start:
            got[port] += len(data)
for server, port in zip(listening, ports):
    threading.Thread(target=take, args=(server, port), daemon=True).start()
print("ready", flush=True)
for _ in ports:
    connected.acquire()
time.sleep(start)
begin = time.monotonic()
print("begun", flush=True)
time.sleep(stop - start)
print(json.dumps(got), flush=True)
"""
_SOURCE = """
import socket, sys, threading, time
address = sys.argv[1]
family, option = socket.AF_INET, (socket.IPPROTO_IP, socket.IP_TOS)
if ":" in address:
    family, option = socket.AF_INET6, (socket.IPPROTO_IPV6, socket.IPV6_TCLASS)
def send(port, dscp):
    with socket.socket(family) as peer:
        peer.setsockopt(*option, dscp << 2)
        peer.connect((address, port))
        while True:
            peer.sendall(bytes(65536))
for flow in sys.argv[2:]:
    port, dscp = flow.split(":")
    threading.Thread(target=send, args=(int(port), int(dscp)), daemon=True).start()
threading.Event().wait()
"""


class Rates(NamedTuple):
    """What arrives of each flow, by its port, and what each queue sends, in bit/s.

    A queue sends some of TCP's bytes twice, and is served whatever TCP makes of its losses. So what a queue has to send
    at least is asked of it, and not of the receiver.
    """

    received: Mapping[int, float]
    sent: Mapping[Any, float]


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
        """TCP as fast as it goes to each port, with a DSCP each; counted between two moments in seconds.

        They are those since all have their connections.
        """
        return TrafficRun(self, flows, start, stop, address)

    def rates(
        self,
        flows: dict[int, int],
        *,
        start: float,
        stop: float,
        count: Callable[[], Mapping[Any, int]],
        address: str = RECEIVER,
    ) -> Rates:
        """Measure such traffic. ``count`` returns the bytes that each queue has sent."""
        with self.bytes_by_port(flows, start=start, stop=stop, address=address) as run:
            run.wait_for_begin()
            before, began = count(), time.monotonic()
            got = run.result()
            after, seconds = count(), time.monotonic() - began
        return Rates(
            {port: 8 * size / (stop - start) for port, size in got.items()},
            {queue: 8 * (after[queue] - size) / seconds for queue, size in before.items()},
        )

    def class_bytes(self, interface: str, where: str | None = None) -> dict[str, int]:
        """Returns the bytes that each HTB class of an interface has sent, by its minor number; on the sender."""
        shown = self.run(where or self.sender, "tc", "-s", "class", "show", "dev", interface)
        assert shown.returncode == 0, shown.stderr
        found = re.findall(r"^class htb \w+:(\w+) .*?Sent (\d+) bytes", shown.stdout, re.M | re.S)
        return {minor: int(count) for minor, count in found}


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
        self._popen(self._hosts.sender, *python, _SOURCE, self._address, *pairs)
        self._has_begun = False
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def wait_for_begin(self) -> None:
        """Wait until the window begins."""
        assert self._sink.stdout is not None
        if not self._has_begun:
            assert self._sink.stdout.readline() == "begun\n"
            self._has_begun = True

    def result(self) -> dict[int, int]:
        """Returns the bytes of each port in the window, at its end."""
        self.wait_for_begin()
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
