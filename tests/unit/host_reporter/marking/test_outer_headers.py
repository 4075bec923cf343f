"""The outer headers of tunnels: real packets of VXLAN, Geneve and IP in IP, through the rules as a kernel follows them.

``tests/host/test_overlay_host.py`` and ``tests/lab`` have the kernel itself.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from ipaddress import ip_address
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.contrib.geneve import GENEVE, GeneveOptions
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether
from scapy.layers.vxlan import VXLAN
from scapy.packet import Packet, Raw

from controller.code_points import POOL_2, code_points
from controller.wire import Mark
from host_reporter.marking.families import IPV4, IPV6, Family
from host_reporter.marking.outer_headers import MAX_PODS, MAX_PODS_OF_JOB, NO_TUNNELS, Inside, Outer, outer
from host_reporter.marking.outer_support import OuterSupport
from host_reporter.marking.rules_text import switch_over
from host_reporter.nic.netdev import Tunnel

VXLAN_4789, GENEVE_6081, IPIP = Tunnel("vxlan", 4789), Tunnel("geneve", 6081), Tunnel("ipip")
A, B, BOTH, NOBODY = 1, 2, 3, 4
"""The pods: of job a, of job b, of both jobs, and of no job."""
ALL = outer(
    [VXLAN_4789, GENEVE_6081, IPIP],
    {
        "a": frozenset(
            ip_address(text).packed for n in (A, BOTH) for text in (f"10.244.0.{n}", f"fd44::{n}", f"fe80::{n}")
        ),
        "b": frozenset(ip_address(text).packed for n in (B, BOTH) for text in (f"10.244.0.{n}", f"fd44::{n}")),
        "unplanned": frozenset({ip_address(f"10.244.0.{NOBODY}").packed}),
    },
    {"a": 59, "b": 51, "elsewhere": 43},
)
MARKS = [Mark(job="a", service_class=0, dscp=59, remote="10.0.0.2", remote_port=80)]
PAYLOAD = TCP(dport=5000, flags="A") / Raw(bytes(500))


def inside(pod: int, dscp: int = 0, version: int = 4, ecn: int = 0, options: bytes = b"") -> Packet:
    """Returns what a pod sends."""
    if version == 6:
        return IPv6(src=f"fd44::{pod}", dst="fd44::9", tc=dscp << 2 | ecn) / PAYLOAD
    return IP(src=f"10.244.0.{pod}", dst="10.244.0.9", tos=dscp << 2 | ecn, options=options) / PAYLOAD


def around(payload: Packet, version: int, tos: int) -> bytes:
    """Returns a packet of a host, as its packet filter gets it."""
    header = IPv6(src="fd00::1", dst="fd00::2", tc=tos) if version == 6 else IP(src="10.0.0.1", dst="10.0.0.2", tos=tos)
    return bytes(header / payload)


def vxlan(packet: Packet) -> Packet:
    return UDP(sport=50_000, dport=4789) / VXLAN(vni=7) / Ether() / packet


def geneve(packet: Packet, words: int = 0) -> Packet:
    options = GeneveOptions(data=bytes(4 * (words - 1))) if words else b""
    return UDP(sport=50_000, dport=6081) / GENEVE(vni=7, options=options) / Ether() / packet


def sent(packet: bytes, text: str, *, has_socket: bool = False) -> int:
    """Returns the TOS byte with which a packet leaves by a text's rules. ``has_socket``: a program here has sent it."""
    data = bytearray(packet)
    is_ipv6 = data[0] >> 4 == 6

    def tos() -> int:
        return int.from_bytes(data[:2], "big") >> 4 & 0xFF if is_ipv6 else data[1]

    def set_dscp(dscp: int) -> None:
        if is_ipv6:
            rest = int.from_bytes(data[:2], "big") & 0xF03F
            data[:2] = (rest | dscp << 6).to_bytes(2, "big")
        else:
            data[1] = dscp << 2 | data[1] & 0b11

    def walk(chain: str) -> None:
        for line in text.splitlines():
            words = shlex.split(line)
            if words[:2] != ["-A", chain] or not fits(words[2:]):
                continue
            if "--set-dscp" in words:
                set_dscp(int(words[-1]))
            else:
                walk(words[-1])
                if words[-2] == "-g":
                    return

    def fits(words: Sequence[str]) -> bool:
        protocol = data[6] if is_ipv6 else data[9]
        at = 40 if is_ipv6 else (data[0] & 0xF) * 4
        for option, value in pairwise(words):
            if option == "-p" and {"udp": 17, "tcp": 6, "4": 4}[value] != protocol:
                return False
            if option == "--dport" and int(value) != int.from_bytes(data[at + 2 : at + 4], "big"):
                return False
            if option == "--dscp" and (int(value) == tos() >> 2) is (words[words.index("--dscp") - 1] == "!"):
                return False
            if option == "--u32" and not u32(bytes(data), value):
                return False
        return not ("--socket-exists" in words and has_socket)

    walk("OUTPUT")
    return tos()


def u32(data: bytes, tests: str) -> bool:
    """Returns what the match u32 of iptables says, by its manual page: ``@`` moves to where the value so far points."""
    for test in tests.split("&&"):
        place, wanted = test.split("=")
        base, value = 0, 0
        for operator, number in re.findall(r"(>>|&|@|^)(0x[0-9a-fA-F]+|\d+)", place):
            operand = int(number, 0)
            if operator == ">>":
                value >>= operand
            elif operator == "&":
                value &= operand
            else:
                base += value if operator == "@" else 0
                if base + operand + 4 > len(data):
                    return False
                value = int.from_bytes(data[base + operand : base + operand + 4], "big")
        if value != int(wanted, 0):
            return False
    return True


def text_of(wanted: Outer, family: Family = IPV4, marks: Iterable[Mark] = ()) -> str:
    return switch_over(tuple(marks), 0, jump=True, outer=wanted, family=family)


TEXTS = {4: text_of(ALL), 6: text_of(ALL, IPV6)}
_ECN = st.integers(0, 3)


def expected(pod: int, dscp: int, own: int) -> int:
    """Returns the DSCP of an outer header that its tunnel makes with ``own``, around a pod's packet with ``dscp``."""
    of_pod = {A: 59, B: 51, BOTH: dscp if dscp in {59, 51} else None}.get(pod)
    # A DSCP that the tunnel sets itself stays unless it is one of ours.
    return of_pod if of_pod is not None else 0 if own in POOL_2.owned else own


@given(
    pod=st.sampled_from([A, B, BOTH, NOBODY]), dscp=st.sampled_from([0, 59, 51, 43, 46]), own=st.integers(0, 63),
    ecn=_ECN, inner_ecn=_ECN, below=st.sampled_from([4, 6]), within=st.sampled_from([4, 6]),
    words=st.integers(0, 63), kind=st.sampled_from(["vxlan", "geneve"]),
)  # fmt: skip
def test_the_outer_header_gets_the_dscp_of_the_pods_job_and_keeps_its_ecn(
    pod: int, dscp: int, own: int, ecn: int, inner_ecn: int, below: int, within: int, words: int, kind: str
) -> None:
    packet = inside(pod, dscp, within, inner_ecn)
    tunnel = vxlan(packet) if kind == "vxlan" else geneve(packet, words)
    assert sent(around(tunnel, below, own << 2 | ecn), TEXTS[below]) == expected(pod, dscp, own) << 2 | ecn


@pytest.mark.parametrize("options", [b"", bytes([1] * 4), bytes([1] * 40)])
def test_headers_with_options_are_passed_over(options: bytes) -> None:
    tunnel = vxlan(inside(BOTH, 59, options=options))
    packet = bytes(IP(src="10.0.0.1", dst="10.0.0.2", options=options) / tunnel)
    assert sent(packet, TEXTS[4]) == 59 << 2


@given(pod=st.sampled_from([A, B, BOTH, NOBODY]), dscp=st.integers(0, 63), ecn=_ECN)
def test_ip_in_ip_is_looked_into_without_a_port(pod: int, dscp: int, ecn: int) -> None:
    packet = around(inside(pod, dscp), 4, ecn)
    assert sent(packet, TEXTS[4]) == expected(pod, dscp, 0) << 2 | ecn
    assert "-p 4" not in TEXTS[6]


def test_what_a_program_of_the_host_sends_to_a_tunnels_port_is_no_tunnel() -> None:
    forged = around(vxlan(inside(A)), 4, 59 << 2)
    assert sent(forged, TEXTS[4], has_socket=True) == 0
    # So is what goes to another port, and what holds something else than IP.
    assert sent(around(UDP(dport=4790) / VXLAN() / Ether() / inside(A), 4, 59 << 2), TEXTS[4]) == 0
    arp = around(UDP(dport=4789) / VXLAN() / Ether(type=0x0806) / Raw(bytes(inside(A))), 4, 59 << 2)
    assert sent(arp, TEXTS[4]) == 0
    bare = around(UDP(dport=6081) / GENEVE(proto=0x0800) / Raw(bytes(Ether() / inside(A))), 4, 0)
    assert sent(bare, TEXTS[4]) == 0, "the header says that there is no frame"


def test_marks_of_connections_are_as_without_tunnels() -> None:
    with_tunnels, without = text_of(ALL, marks=MARKS), text_of(NO_TUNNELS, marks=MARKS)
    packet = bytes(IP(dst="10.0.0.2") / TCP(dport=80, flags="PA") / Raw(bytes(100)))
    for text in (with_tunnels.replace("-d 10.0.0.2 ", ""), without.replace("-d 10.0.0.2 ", "")):
        assert "TRAINYARD-A0" in text
    assert set(without.splitlines()) < set(with_tunnels.splitlines())
    assert sent(packet[:1] + b"\xec" + packet[2:], text_of(ALL)) == 0


def test_where_the_kernel_cannot_look_inside_tunnels_packets_stay_as_they_are() -> None:
    text = text_of(ALL._replace(can_look=False))
    assert "u32" not in text
    assert sent(around(vxlan(inside(NOBODY)), 4, 59 << 2 | 1), text) == 59 << 2 | 1, "the tunnel inherits, or is set so"
    assert sent(around(vxlan(inside(A)), 4, 59 << 2), text, has_socket=True) == 0


def test_a_tunnel_that_copies_the_dscp_of_another_pod_gives_it_no_job() -> None:
    # Where jobs have DSCPs of their own, those of this host's jobs are not cleared elsewhere.
    text = switch_over((), 0, jump=True, outer=ALL, points=code_points((3, 7), None))
    assert sent(around(vxlan(inside(NOBODY, 59)), 4, 59 << 2 | 1), text) == 1
    assert sent(around(vxlan(inside(A)), 4, 51 << 2 | 1), text) == 59 << 2 | 1


def test_each_port_of_a_kind_leads_to_one_chain() -> None:
    pods = {"a": frozenset({bytes([10, 244, 0, 1])})}
    found = outer([Tunnel("vxlan", 8472, inherits=True), VXLAN_4789, VXLAN_4789], pods, {"a": 59})
    assert found == Outer((VXLAN_4789, Tunnel("vxlan", 8472)), (Inside(bytes([10, 244, 0, 1]), 59),))
    text = text_of(found)
    assert text.count(" -g TRAINYARD-VXLAN\n") == 2
    assert text.count("-A TRAINYARD-VXLAN -m u32") == 1
    for tunnels, of_jobs, dscps in (([], pods, {"a": 59}), ([IPIP], {}, {"a": 59}), ([IPIP], pods, {"b": 59})):
        assert outer(tunnels, of_jobs, dscps) == NO_TUNNELS
    assert text_of(NO_TUNNELS) == switch_over((), 0, jump=True)


def test_the_chain_of_a_tunnel_that_is_gone_is_removed() -> None:
    text = switch_over((), 0, jump=True, outer=ALL, present={"TRAINYARD-VXLAN", "TRAINYARD", "OUTPUT"})
    assert "-X" not in text
    text = switch_over((), 0, jump=True, present={"TRAINYARD-VXLAN", "TRAINYARD", "OUTPUT"})
    assert [line for line in text.splitlines() if line[:2] in ("-F", "-X")] == [
        "-F TRAINYARD-VXLAN",
        "-X TRAINYARD-VXLAN",
    ]


def test_too_many_addresses_are_left_out_and_counted() -> None:
    def pods(first: int, count: int) -> frozenset[bytes]:
        return frozenset(n.to_bytes(4, "big") for n in range(first, first + count))

    first = 0x0AF40000
    greedy = outer([VXLAN_4789], {"a": pods(first, MAX_PODS), "b": pods(first + MAX_PODS, 1)}, {"a": 59, "b": 51})
    assert (len(greedy.inside), greedy.left_out) == (MAX_PODS_OF_JOB + 1, MAX_PODS - MAX_PODS_OF_JOB)
    assert greedy.inside[-1].dscp == 51, "a job with many leaves room for another"
    jobs = {f"j{n}": pods(first + n * 60, 60) for n in range(5)}
    many = outer([VXLAN_4789], jobs, dict.fromkeys(jobs, 59))
    assert (len(many.inside), many.left_out) == (MAX_PODS, 5 * 60 - MAX_PODS)


@pytest.mark.parametrize("lacks", ["", "owner", "u32"])
def test_what_the_kernel_lacks_is_tried_once_and_said(lacks: str) -> None:
    tries: list[str] = []

    def can(rule: str) -> str | None:
        tries.append(rule)
        return f"no {lacks}" if lacks and f"-m {lacks}" in rule else None

    support = OuterSupport()
    assert support.possible(NO_TUNNELS, can) == NO_TUNNELS
    assert not tries, "where no tunnel is, nothing is tried"
    for _ in range(2):
        found = support.possible(ALL, can)
    assert len(tries) == 2
    assert found == {"": ALL, "owner": NO_TUNNELS, "u32": ALL._replace(can_look=False)}[lacks]
    assert (support.trouble is None) is (lacks == "")
    assert support.trouble is None or f"no {lacks}; it needs the module xt_{lacks}" in support.trouble
