"""The DSCP of the outer headers of tunnels, as text for ``iptables-restore``. Pure.

A network between hosts sees the outer header alone. Its packets pass OUTPUT like those of a program, although a pod has
sent what is inside. They go to a chain of their tunnel's kind, which takes a DSCP of ours away, and then sets that of
the job whose pod has sent the packet inside, by its source address. The target changes no bit of ECN, which the tunnel
has set (RFC 6040). Where several jobs share a pod, the DSCP of the packet inside says which of them has sent it. A mark
of the kernel would not serve: it ends where a packet leaves the network namespace of its pod.

What a program of this host itself sends to a tunnel's port only looks like a tunnel. It has a socket of this network
namespace, and takes the way of all other packets. So does what such a program sends into a tunnel.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from host_reporter.ip_addresses import is_ipv4
from host_reporter.marking.families import IPV4, Family
from host_reporter.nic.netdev import Tunnel, TunnelKind

MAX_PODS = 256
"""Tell at most so many addresses of pods apart, because each packet of a tunnel is compared with all of them."""
MAX_PODS_OF_JOB = 64
"""Tell at most so many addresses of one job apart: a pod may give itself as many as it likes."""

_OF_NO_SOCKET_HERE = "-m owner ! --socket-exists"
_UDP_BYTES, _TUNNEL_BYTES, _ETHERNET_BYTES = 8, 8, 14
_INSIDE_VXLAN = _UDP_BYTES + _TUNNEL_BYTES + _ETHERNET_BYTES
"""Where the packet inside begins, counted from the UDP header: of VXLAN (RFC 7348, section 5), and of Geneve without
options (RFC 8926, section 3.4)."""
_TYPE_BYTES = 2
_IPV4_TYPE, _IPV6_TYPE, _ETHERNET_TYPE = 0x0800, 0x86DD, 0x6558
_IPV4_SOURCE_AT, _IPV6_SOURCE_AT = 12, 8
_BEHIND_IPV4, _BEHIND_IPV6 = "0>>22&0x3C@", 40
"""Where the UDP header begins: the header of IPv4 has its length, and that of IPv6 is always as long."""


class Inside(NamedTuple):
    """A source address of packets inside tunnels, and the DSCP of its job.

    ``is_shared``: several jobs send from there, so that only packets with this DSCP are this job's.
    """

    source: bytes
    dscp: int
    is_shared: bool = False


class Outer(NamedTuple):
    """The tunnels of a host, and the jobs' packets inside them.

    ``can_look`` of False: the kernel cannot look inside. Then the outer headers stay as the tunnels make them.
    ``left_out`` counts the addresses that were too many.
    """

    tunnels: tuple[Tunnel, ...] = ()
    inside: tuple[Inside, ...] = ()
    can_look: bool = True
    left_out: int = 0


NO_TUNNELS = Outer()


def outer(tunnels: Iterable[Tunnel], pods: Mapping[str, frozenset[bytes]], dscps: Mapping[str, int]) -> Outer:
    """Returns what these tunnels carry of jobs: ``pods`` are the addresses of the pods of each job, by job."""
    ways = {(tunnel.kind, tunnel.udp_port) for tunnel in tunnels}
    of_job = {job: [*filter(_is_routed, sorted(pods[job]))] for job in pods.keys() & dscps.keys()}
    senders: dict[bytes, set[int]] = {}
    for job, addresses in of_job.items():
        for address in addresses[:MAX_PODS_OF_JOB]:
            senders.setdefault(address, set()).add(dscps[job])
    if not ways or not senders:
        return NO_TUNNELS
    inside = sorted(Inside(source, dscp, len(found) > 1) for source, found in senders.items() for dscp in found)
    left_out = sum(max(len(addresses) - MAX_PODS_OF_JOB, 0) for addresses in of_job.values())
    return Outer(
        tuple(Tunnel(kind, port) for kind, port in sorted(ways)),
        tuple(inside[:MAX_PODS]),
        left_out=left_out + max(len(inside) - MAX_PODS, 0),
    )


def _is_routed(address: bytes) -> bool:
    """Returns whether packets with this address may leave their link."""
    return not ipaddress.ip_address(address).is_link_local


class OuterRules(NamedTuple):
    """The chains of tunnels, their rules, and the rules that lead to them from the head of the agent's chain."""

    chains: tuple[str, ...]
    rules: tuple[str, ...]
    leads: tuple[str, ...]


def tunnel_chains(chain: str) -> tuple[str, ...]:
    """Returns the names of all chains that tunnels may have. ``chain`` is the agent's."""
    return tuple(f"{chain}-{kind.upper()}" for kind in get_args(TunnelKind))


def outer_rules(wanted: Outer, chain: str, clear: str, other: int, family: Family = IPV4) -> OuterRules:
    """Returns the rules in packets of ``family``.

    ``chain`` is the agent's, ``clear`` the one that takes DSCPs away, and ``other`` the DSCP in their place.
    """
    tunnels = [tunnel for tunnel in wanted.tunnels if not (family.is_ipv6 and tunnel.kind == "ipip")]
    kinds = dict.fromkeys(tunnel.kind for tunnel in tunnels)
    rules: list[str] = []
    for kind in kinds if wanted.can_look else ():
        of_kind = f"-A {chain}-{kind.upper()}"
        rules.append(f"{of_kind} -m dscp ! --dscp 0 -j {clear}")
        # A pod of no job may set the DSCP of a job, and its tunnel may copy it.
        jobs = sorted({each.dscp for each in wanted.inside})
        rules += [f"{of_kind} -m dscp --dscp {dscp} -j DSCP --set-dscp {other}" for dscp in jobs]
        for each in wanted.inside:
            if kind != "ipip" or is_ipv4(each.source):
                match = "&&".join(_tests(kind, each, family))
                rules.append(f'{of_kind} -m u32 --u32 "{match}" -j DSCP --set-dscp {each.dscp}')
    leads = (f"-A {chain} {_carried_by(tunnel)} -g {chain}-{tunnel.kind.upper()}" for tunnel in tunnels)
    return OuterRules(tuple(f"{chain}-{kind.upper()}" for kind in kinds), tuple(rules), tuple(leads))


def _carried_by(tunnel: Tunnel) -> str:
    carrier = f"-p udp --dport {tunnel.udp_port}" if tunnel.udp_port else "-p 4"
    return f"{carrier} {_OF_NO_SOCKET_HERE}"


def _tests(kind: TunnelKind, each: Inside, family: Family) -> Iterator[str]:
    """Yields what the match u32 compares, each time four bytes (iptables-extensions(8))."""
    if kind == "ipip":
        value, mask = _first_of_ipv4(each)
        yield _at(_BEHIND_IPV4, 0, value << 16, mask << 16)
        yield from _source(each, _BEHIND_IPV4, 0)
        return
    to_inside, inside = ("", _BEHIND_IPV6 + _INSIDE_VXLAN) if family.is_ipv6 else (_BEHIND_IPV4, _INSIDE_VXLAN)
    if kind == "geneve":
        # The lower six bits of the header's first byte are the length of its options, in units of four bytes.
        header = inside - _TUNNEL_BYTES - _ETHERNET_BYTES
        yield _at(to_inside, header, _ETHERNET_TYPE, 0xFFFF)
        to_inside += f"{header}>>22&0xFC@"
    frame, (value, mask) = (
        (_IPV4_TYPE, _first_of_ipv4(each)) if is_ipv4(each.source) else (_IPV6_TYPE, _first_of_ipv6(each))
    )
    yield _at(to_inside, inside - _TYPE_BYTES, frame << 16 | value, 0xFFFF0000 | mask)
    yield from _source(each, to_inside, inside)


def _first_of_ipv4(each: Inside) -> tuple[int, int]:
    """Returns what the first two bytes of a header are: the version, and the DSCP where that matters; and a mask."""
    return (0x4000 | each.dscp << 2, 0xF0FC) if each.is_shared else (0x4000, 0xF000)


def _first_of_ipv6(each: Inside) -> tuple[int, int]:
    return (0x6000 | each.dscp << 6, 0xFFC0) if each.is_shared else (0x6000, 0xF000)


def _source(each: Inside, base: str, header: int) -> Iterator[str]:
    at = header + (_IPV4_SOURCE_AT if is_ipv4(each.source) else _IPV6_SOURCE_AT)
    for offset in range(0, len(each.source), 4):
        yield _at(base, at + offset, int.from_bytes(each.source[offset : offset + 4], "big"))


def _at(base: str, offset: int, value: int, mask: int = 0xFFFFFFFF) -> str:
    masked = "" if mask == 0xFFFFFFFF else f"&{mask:#x}"
    return f"{base}{offset}{masked}={value:#x}"
