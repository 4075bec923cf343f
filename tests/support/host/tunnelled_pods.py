"""Two pods on a host whose traffic leaves by a tunnel to a peer: what the cable then carries."""

from __future__ import annotations

import contextlib
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from evaluation.bench.support.waiting import wait_until
from tests.support.agent.cabled_host import INTERFACE, OWN, OWN_IPV6, PEER, PEER_IPV6, cabled_host
from tests.support.paths import ROOT

TUNNEL = "overlay"
BEHIND, BEHIND_IPV6 = "10.245.0.9", "fd45::9"
"""The addresses of a pod on the peer, which nobody has: packets to them leave all the same."""
UDP_PORTS = {"vxlan": 4789, "geneve": 6081, "ipip": 0}
_UDP, _IPV4 = 17, 4
"""Protocols of what an outer header carries."""
_ALL, _IPV6_TYPE = 0x0003, 0x86DD
DATAGRAM_BYTES = 100


class Pod(NamedTuple):
    """A pod: its number, and a process in its network namespace."""

    number: int
    pid: int

    @property
    def address(self) -> str:
        return f"10.244.{self.number}.2"

    @property
    def ipv6(self) -> str:
        return f"fd44:{self.number}::2"

    def send(self, traffic_class: int, *, over_ipv6: bool = False) -> None:
        """Send some datagrams to a pod of the peer."""
        to = BEHIND_IPV6 if over_ipv6 else BEHIND
        command = [
            sys.executable,
            "-m",
            "tests.support.host.send_datagrams",
            to,
            str(DATAGRAM_BYTES),
            f"{traffic_class}:3",
        ]
        subprocess.run(["nsenter", "--target", str(self.pid), "--net", *command], cwd=ROOT, check=True)


def kinds() -> list[tuple[str, int]]:
    """Returns the kinds of tunnels that this kernel has, each with the IP versions that can carry it."""
    found = []
    for kind in UDP_PORTS:
        script = f"ip link add t0 type {kind} {_made(kind, 4, '')}"
        if subprocess.run(["unshare", "--net", "sh", "-ec", script], capture_output=True, check=False).returncode == 0:
            found += [(kind, 4), *([(kind, 6)] if kind != "ipip" else [])]
    assert ("vxlan", 4) in found, "this kernel has no VXLAN"
    return found


def lay(kind: str, below: int, how: str = "") -> None:
    """Make the host's tunnel to the peer anew; ``how`` are further words for ip link."""
    _ip(f"link del {TUNNEL}", check=False)
    _ip(f"link add {TUNNEL} type {kind} {_made(kind, below, how)}")
    _ip(f"link set {TUNNEL} up")
    _ip(f"route add 10.245.0.0/16 dev {TUNNEL}")
    if kind != "ipip":
        _ip(f"neighbour add {BEHIND} lladdr 02:00:00:00:00:09 dev {TUNNEL}")
        _ip(f"route add fd45::/64 dev {TUNNEL}")
        _ip(f"neighbour add {BEHIND_IPV6} lladdr 02:00:00:00:00:09 dev {TUNNEL}")


@contextlib.contextmanager
def tunnelled_pods() -> Iterator[tuple[Pod, Pod]]:
    """Be on a host with a cable and two pods, whose traffic it forwards. It has no tunnel yet."""
    with cabled_host(), contextlib.ExitStack() as stack:
        for file in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            Path("/proc/sys/net", file).write_text("1")
        for address in (PEER, PEER_IPV6):
            ping = ["ping", "-n", "-q", "-c", "1", "-W", "1", address]
            # A datagram of a tunnel that waits for the peer's MAC address may come late, or never.
            wait_until(lambda ping=ping: not subprocess.run(ping, capture_output=True, check=False).returncode)
        yield _pod(stack, 1), _pod(stack, 2)


def left_while(act: Callable[[], object], kind: str) -> set[int]:
    """Returns the TOS bytes of the outer headers around datagrams that leave the host by its cable in an action."""
    seen = set()
    with socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL)) as raw:
        raw.bind((INTERFACE, _ALL))
        act()
        while select.select([raw], [], [], 0.3)[0]:
            packet, where = raw.recvfrom(65536)
            if where[2] != socket.PACKET_OUTGOING or not packet.endswith(bytes(DATAGRAM_BYTES)):
                continue
            is_ipv6 = where[1] == _IPV6_TYPE
            tos = int.from_bytes(packet[:2], "big") >> 4 & 0xFF if is_ipv6 else packet[1]
            at = 40 if is_ipv6 else (packet[0] & 15) * 4
            protocol, port = packet[6] if is_ipv6 else packet[9], int.from_bytes(packet[at + 2 : at + 4], "big")
            if (protocol, port) == (_UDP, UDP_PORTS[kind]) or (protocol, kind) == (_IPV4, "ipip"):
                seen.add(tos)
    return seen


def _pod(stack: contextlib.ExitStack, number: int) -> Pod:
    holder = stack.enter_context(subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE))
    assert holder.stdin is not None
    stack.callback(holder.stdin.close)
    here = Path("/proc/thread-self/ns/net").readlink()
    wait_until(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != here, 10, what="the pod's namespace")
    pod = Pod(number, holder.pid)
    _ip(f"link add pod{number} type veth peer name eth0 netns {holder.pid}")
    _ip(f"address add 10.244.{number}.1/24 dev pod{number}")
    _ip(f"address add fd44:{number}::1/64 dev pod{number} nodad")
    _ip(f"link set pod{number} up")
    inside = f"nsenter --target {holder.pid} --net ip"
    for words in (
        f"address add {pod.address}/24 dev eth0",
        f"address add {pod.ipv6}/64 dev eth0 nodad",
        "link set eth0 up",
        f"route add default via 10.244.{number}.1",
        f"-6 route add default via fd44:{number}::1",
    ):
        subprocess.run([*inside.split(), *words.split()], check=True)
    return pod


def _made(kind: str, below: int, how: str) -> str:
    own, peer = (OWN, PEER) if below == 4 else (OWN_IPV6, PEER_IPV6)
    words = {
        "vxlan": f"id 7 dstport 4789 local {own} remote {peer}",
        "geneve": f"id 7 remote {peer}",
        "ipip": f"local {own} remote {peer}",
    }
    return f"{words[kind]} {how}"


def _ip(words: str, *, check: bool = True) -> None:
    subprocess.run(["ip", *words.split()], check=check, capture_output=True)
