"""Sends each packet of the table from its host, through the packet filters that an agent has filled, and captures it.

Run in a network namespace of its own, which then holds both ends of a cable. The first argument is the variant of
iptables; IPv6 goes through the same variant of ip6tables. The second one is "own" where jobs have DSCPs of their own.
It prints the TOS byte of each case behind the filter as JSON: an object of the cases' names. A case that is not IP and
came as it was sent has null. What has not come is left out.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controller.code_points import CodePoints
from controller.loop.host_plans import as_mark
from controller.rules.marking import PortMarks, marks
from controller.rules.own_dscps.host_jobs import host_jobs
from controller.wire import Mark
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.marking import iptables
from host_reporter.marking.families import IPV4, IPV6
from host_reporter.marking.iptables import Marker
from host_reporter.marking.marks_here import by_link
from tests.support.packets.expected import Case, all_cases
from tests.support.packets.frames import ETHER_BYTES
from tests.support.packets.world import CLASSES, ENDS, HOSTS, OWN_POINTS, POINTS, snapshot, unlisted

CABLE, FAR_END = "near", "far"
MTU = 9000
WAIT_SECONDS = 10.0
_ETH_P_ALL, _SO_RCVBUFFORCE = 3, 33
_FIRST_NUMBER = 1000


def main(variant: str, whose: str) -> None:
    own = whose == "own"
    iptables.VARIANTS = (variant,)
    lay_cable()
    markers = [Marker(family) for family in (IPV4, IPV6)]
    arrived: dict[str, int | None] = {}
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ALL)) as capture:
        capture.bind((FAR_END, 0))
        capture.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, 1 << 24)
        for host in HOSTS:
            for marker in markers:
                marks_here = by_link(marks_of(host, own=own), PacketSources(), marker.family).marks
                marker.apply(marks_here, points_of(host, own=own))
            sent = [case for case in all_cases() if case.pair.src.port == ENDS[host].port]
            for number, case in enumerate(sent, _FIRST_NUMBER):
                send(case, number)
            arrived |= receive(capture, sent)
    for marker in markers:
        marker.remove()
    json.dump(arrived, sys.stdout)


def lay_cable() -> None:
    """Join both ends, and let everybody's address lead to the near one. No other packet is sent."""
    lines = [
        f"link add {CABLE} mtu {MTU} type veth peer name {FAR_END} mtu {MTU}",
        *(f"link set {end} addrgenmode none" for end in (CABLE, FAR_END)),
        *(f"link set {end} up" for end in (CABLE, FAR_END)),
        f"address add 10.7.0.250/24 dev {CABLE}",
        f"address add fd07::250/64 dev {CABLE} nodad",
        f"route add 10.8.0.0/24 dev {CABLE}",
        f"route add fd08::/64 dev {CABLE}",
    ]
    for end in ENDS.values():
        addresses = (*end[2:], *unlisted(end)[2:])
        lines += [f"neighbour add {address} lladdr {end.mac} dev {CABLE}" for address in addresses]
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True, stdout=sys.stderr)


def points_of(host: str, *, own: bool) -> CodePoints:
    """Returns the DSCPs of a host's plan."""
    if not own:
        return POINTS
    jobs = tuple(job.dscp for job in host_jobs(snapshot((), hosts_mark=True, own=True), CLASSES).get(host, ()))
    return replace(OWN_POINTS, jobs=jobs, exclusive=OWN_POINTS.exclusive - set(jobs))


def marks_of(host: str, *, own: bool) -> Sequence[Mark]:
    """Returns the marks of a host's plan."""
    of_host = marks(snapshot((), hosts_mark=True, own=own), CLASSES).get(host, ())
    each = [one for mark in of_host for one in (mark.each() if isinstance(mark, PortMarks) else (mark,))]
    return [as_mark(mark) for mark in each]


def send(case: Case, number: int) -> None:
    """Send a case's packet without its VLANs: the packet filter sees a packet before an interface puts tags on it.

    What is IP goes through the kernel's own way, and bears the number.
    """
    if case.family is None:
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as port:
            port.bind((CABLE, 0))
            port.send(case.untagged(None))
        return
    packet = bytearray(case.untagged(case.sent())[ETHER_BYTES:])
    place = slice(4, 6) if case.family == 4 else slice(2, 4)  # the identification, and the end of the flow label
    packet[place] = number.to_bytes(2, "big")
    kind = socket.AF_INET if case.family == 4 else socket.AF_INET6
    to = packet[16:20] if case.family == 4 else packet[24:40]
    with socket.socket(kind, socket.SOCK_RAW, socket.IPPROTO_RAW) as port:
        port.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, CABLE.encode())
        port.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        port.sendto(packet, (socket.inet_ntop(kind, to), 0))


def receive(capture: socket.socket, sent: Sequence[Case]) -> Mapping[str, int | None]:
    """Returns the TOS bytes of the cases that come."""
    bare: defaultdict[bytes, list[Case]] = defaultdict(list)
    for case in sent:
        if case.family is None:
            bare[case.untagged(None)].append(case)
    arrived: dict[str, int | None] = {}
    deadline = time.monotonic() + WAIT_SECONDS
    while len(arrived) < len(sent) and (left := deadline - time.monotonic()) > 0:
        capture.settimeout(left)
        try:
            frame = capture.recv(1 << 16)
        except TimeoutError:
            break
        if bare.get(frame):
            arrived[bare[frame].pop().name] = None
        elif (found := numbered(frame)) is not None:
            family, number, tos = found
            case = sent[number - _FIRST_NUMBER] if 0 <= number - _FIRST_NUMBER < len(sent) else None
            if case is not None and case.family == family:
                arrived[case.name] = tos
    return arrived


def numbered(frame: bytes) -> tuple[int, int, int] | None:
    """Returns the IP version of a frame, its number, and its TOS byte; None where it is not IP."""
    packet = frame[ETHER_BYTES:]
    if frame[12:14] == b"\x08\x00":
        return 4, int.from_bytes(packet[4:6], "big"), packet[1]
    if frame[12:14] == b"\x86\xdd":
        return 6, int.from_bytes(packet[2:4], "big"), int.from_bytes(packet[:2], "big") >> 4 & 0xFF
    return None


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
