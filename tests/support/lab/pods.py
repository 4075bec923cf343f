"""Pods on the hosts of an emulated network: network namespaces behind a bridge, joined by tunnels between all hosts.

Jobs run in them. The network between the hosts sees the outer headers of tunnels alone, as under an overlay of
Kubernetes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evaluation.bench.support.hosts.job_process import in_group
from tests.support.lab.tcp_receiver import RECEIVER
from topologies.emulation import Emulation

TunnelKind = Literal["vxlan", "geneve"]
UDP_PORT = {"vxlan": 4789, "geneve": 6081}
PORT = 5000
MTU = 1400
"""It leaves room for the headers of each tunnel."""
_BRIDGE, _TUNNEL, _ID = "cni0", "overlay", 7

# Sends for ever, with a DSCP of its own choice.
_SENDER = r"""
import socket, sys
peer = socket.socket()
peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[3]) << 2)
peer.connect((sys.argv[1], int(sys.argv[2])))
print("connected", flush=True)
while True:
    peer.sendall(bytes(65536))
"""
# Counts tunnels' packets with data that come to an interface: outer TOS, inner TOS and inner source of each.
_SEEN = r"""
import collections, json, socket, sys, time
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
raw.bind((sys.argv[1], 0x0800))
raw.settimeout(0.5)
port, until = int(sys.argv[2]).to_bytes(2, "big"), time.monotonic() + float(sys.argv[3])
seen = collections.Counter()
while time.monotonic() < until:
    try:
        packet, place = raw.recvfrom(65536)
    except TimeoutError:
        continue
    udp = (packet[0] & 15) * 4
    if place[2] == socket.PACKET_OUTGOING or packet[9] != 17 or packet[udp + 2:udp + 4] != port:
        continue
    options = (packet[udp + 8] & 63) * 4 if port == b"\x17\xc1" else 0
    inside = packet[udp + options + 30:]
    if packet[udp + options + 28:udp + options + 30] == b"\x08\x00" and inside[9] == 6 and len(inside) > 500:
        seen[packet[1], inside[1], socket.inet_ntoa(inside[12:16])] += 1
print(json.dumps([[*key, count] for key, count in seen.items()]))
"""


@dataclass(frozen=True)
class Pod:
    """A pod on ``host``. ``pid`` is a process in its namespace that does nothing."""

    host: str
    address: str
    pid: int

    def inside(self, command: Sequence[str]) -> list[str]:
        return ["nsenter", "--target", str(self.pid), "--net", *command]


@dataclass(frozen=True)
class Seen:
    """Packets of a tunnel that are alike: the TOS bytes of both headers, and who has sent what is inside."""

    outer: int
    inner: int
    source: str
    count: int


@dataclass
class Job:
    """A job's processes in its pods, and the files that tell agents of it."""

    receiver: subprocess.Popen[str]
    senders: list[subprocess.Popen[str]]
    files: list[Path] = field(default_factory=list)

    def received(self) -> int:
        assert self.receiver.stdin is not None and self.receiver.stdout is not None
        self.receiver.stdin.write("\n")
        self.receiver.stdin.flush()
        return int(self.receiver.stdout.readline())

    def end(self) -> None:
        for file in self.files:
            file.unlink(missing_ok=True)
        for process in (*self.senders, self.receiver):
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


class Pods:
    """The bridges and tunnels of one network, and its pods."""

    def __init__(self, emulation: Emulation, kind: TunnelKind) -> None:
        self._emulation = emulation
        self.kind = kind
        self._count = 0
        for host in emulation.hosts:
            self._sh(host, f"ip link add {_BRIDGE} mtu {MTU} type bridge; ip link set {_BRIDGE} up")
            self._sh(host, "; ".join(self._tunnels(host)))

    def add(self, host: str) -> Pod:
        """Start a pod. Connections in it can be told of congestion (ECN)."""
        self._count += 1
        address, outside = f"10.244.0.{self._count}", f"pod{self._count}"
        pid = self._emulation.popen(host, ["unshare", "--net", "sleep", "infinity"]).pid
        own = Path(f"/proc/{self._emulation.pid(host)}/ns/net").readlink()
        while Path(f"/proc/{pid}/ns/net").readlink() in (own, Path("/proc/self/ns/net").readlink()):
            time.sleep(0.01)
        pod = Pod(host, address, pid)
        self._sh(
            host,
            f"ip link add {outside} mtu {MTU} type veth peer name eth0 mtu {MTU} netns {pid}; "
            f"ip link set {outside} master {_BRIDGE} up",
        )
        # A packet of 64 KB would pass a slow class whole. The hosts of the lab have the same limit.
        script = (
            f"ip link set lo up; ip link set eth0 gso_max_segs 8 up; ip address add {address}/16 dev eth0; "
            "echo 1 >/proc/sys/net/ipv4/tcp_ecn"
        )
        self._emulation.run(host, pod.inside(["sh", "-ec", script]))
        return pod

    def job(self, name: str, receiver: Pod, *senders: Pod, dscp: int = 0, agents: bool = True) -> Job:
        """Start a job whose senders send to one port for ever. With ``agents`` those of its hosts follow it.

        ``dscp`` is what its programs set themselves.
        """
        group = self._emulation.cgroup(name)
        port = PORT + self._count
        self._count += 1
        job = Job(self._start(group, receiver, RECEIVER, receiver.address, str(port)), [])
        for sender in senders:
            job.senders.append(self._start(group, sender, _SENDER, receiver.address, str(port), str(dscp)))
        for host in {pod.host for pod in (receiver, *senders)} if agents else ():
            file = self._emulation.folder / "jobs.d" / host / f"{name}.json"
            file.with_suffix(".new").write_text(json.dumps({"id": name, "cgroup": str(group)}))
            job.files.append(file.with_suffix(".new").rename(file))
        return job

    def seen(self, host: str, seconds: float) -> list[Seen]:
        """Returns the packets with data that tunnels bring to a host."""
        arguments = [f"{host}-eth0", str(UDP_PORT[self.kind]), str(seconds)]
        text = self._emulation.run(host, [sys.executable, "-S", "-c", _SEEN, *arguments], timeout=seconds + 60)
        return [Seen(*each) for each in json.loads(text)]

    def _start(self, group: Path, pod: Pod, program: str, *arguments: str) -> subprocess.Popen[str]:
        # Into the group where the hierarchy is seen, and only then into the pod.
        command = [*in_group(group), *pod.inside([sys.executable, "-S", "-c", program, *arguments])]
        process = self._emulation.popen(None, command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None and process.stdout.readline(), "it listens, or it is connected"
        return process

    def _tunnels(self, host: str) -> list[str]:
        own = self._emulation.address(host)
        others = [self._emulation.address(other) for other in self._emulation.hosts if other != host]
        if self.kind == "vxlan":
            lines = [f"ip link add {_TUNNEL} mtu {MTU} type vxlan id {_ID} dstport {UDP_PORT['vxlan']} local {own}"]
            lines += [f"bridge fdb append 00:00:00:00:00:00 dev {_TUNNEL} dst {other}" for other in others]
            names = [_TUNNEL]
        else:
            names = [f"{_TUNNEL}{number}" for number, _ in enumerate(others)]
            lines = [
                f"ip link add {name} mtu {MTU} type geneve id {_ID} remote {other}"
                for name, other in zip(names, others, strict=True)
            ]
        for name in names:
            # What came by one tunnel must not leave by the next one: each host has one to every other.
            lines += [f"ip link set {name} master {_BRIDGE} up", f"bridge link set dev {name} isolated on"]
        return lines

    def _sh(self, host: str, script: str) -> None:
        self._emulation.run(host, ["sh", "-ec", script])
