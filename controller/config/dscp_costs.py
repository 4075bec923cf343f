"""Says in words what the chosen DSCPs cost. Pure.

RFC 4594 and RFC 8622 recommend what programs use which DSCP for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from controller.code_points import CNP_DSCP, CodePoints, precedence
from controller.config.config import Config
from controller.model import Host

_USES: Mapping[int, str] = MappingProxyType(
    {
        56: "CS7, the network's own control",
        48: "CS6, routing protocols such as BGP and OSPF, and RoCE's congestion notification",
        40: "CS5, the signalling of calls",
        32: "CS4, interactive video",
        24: "CS3, video streams and signalling",
        16: "CS2, the management of the network",
        8: "CS1, traffic of low priority such as backups",
        46: "EF, voice",
        44: "VOICE-ADMIT, voice",
        26: "AF31, RoCE and multimedia streams",
        1: "LE, traffic of lower effort",
    }
)
_ASSURED = ("large transfers", "data that is urgent", "multimedia streams", "video conferences")
"""The use of each class of assured forwarding, AF1 to AF4 (RFC 2597)."""
_SHOWN = 10
"""Name at most this many hosts."""


def costs(config: Config) -> tuple[str, ...]:
    """Returns a sentence for each thing that the DSCPs of these settings cost; none for the default ones."""
    points = config.code_points
    of_classes = () if config.enforcement.has_own_dscps else _of_precedence(points)
    return (*_of_sharing(config, points), *_of_acknowledgements(config, points), *of_classes)


def unbelieved(config: Config, hosts: Mapping[str, Host]) -> tuple[str, ...]:
    """Returns the hosts whose marks no switch would believe, where switches go by marks.

    A switch believes a DSCP that other programs use, too, at the ports of hosts alone.
    """
    if not config.code_points.shared or not config.enforcement.switches:
        return ()
    return tuple(sorted(name for name, host in hosts.items() if host.switch is None or host.switch_port is None))


def listed(names: Sequence[str]) -> str:
    """Returns the first names, and how many there are more."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _of_sharing(config: Config, points: CodePoints) -> Iterator[str]:
    if not points.shared:
        return
    yield f"other programs use these DSCPs, too: {'; '.join(_uses(sorted(points.shared, reverse=True)))}"
    if config.enforcement.has_own_dscps:
        yield from _of_sharing_with_jobs(points)
    elif config.enforcement.hosts:
        yield (
            "hosts clear these DSCPs only in what the cgroup of a job sends, so the interface of a host serves any "
            "other program that sets one like a job of that class"
        )
    if not config.enforcement.switches:
        return
    if config.enforcement.is_by_dscp:
        yield (
            "switches believe these DSCPs at the ports of all hosts that untrusted_hosts does not name, whatever "
            "program has set them, and at no other port"
        )
        return
    if config.links:
        yield (
            "a packet that another program sends with one of these DSCPs is other traffic at its first switch, and "
            "is served like a job of that class at the switches behind it"
        )
    if names := unbelieved(config, config.host_map()):
        yield (
            "where the rules exceed table_budget, switches go by DSCPs at the ports of hosts alone, and jobs' packets "
            f"are other traffic from {listed(names)}: set switch and port"
        )


def _of_sharing_with_jobs(points: CodePoints) -> Iterator[str]:
    yield "no host clears a DSCP of its jobs, so any program that sets one is served like the job that has it"
    if CNP_DSCP in points.of_data:
        yield (
            f"NICs give RoCE's congestion notification (CNP) DSCP {CNP_DSCP}, so it is served like the job that has "
            "it, and waits with that job: leave it out of dscp.jobs where there is RoCE"
        )


def _of_acknowledgements(config: Config, points: CodePoints) -> Iterator[str]:
    enforcement = config.enforcement
    if enforcement.has_own_dscps and points.acknowledgements is None:
        yield (
            "packets without data have the DSCP of their job, so they wait with it: a job that waits in one direction "
            "is slower in the other one, too"
        )
    if points.sure_acknowledgements is not None or not (enforcement.is_by_flows and enforcement.hosts):
        return  # otherwise switches believe every mark, or hosts mark nothing
    why = "no DSCP of their own" if points.acknowledgements is None else "a DSCP that other programs use, too"
    yield (
        "packets without data are served with the class of their job at switches, because acknowledgements have "
        f"{why}: a job that waits in one direction is slower in the other one, too"
    )


def _of_precedence(points: CodePoints) -> Iterator[str]:
    numbered = pairwise(enumerate(points.classes))
    alike = [f"{k} and {k + 1}" for (k, a), (_, b) in numbered if precedence(a) == precedence(b)]
    if alike:
        yield f"a network that looks at the precedence alone serves these classes alike: {', '.join(alike)}"
    numbered = pairwise(enumerate(points.classes))
    turned = [f"{k + 1} before {k}" for (k, a), (_, b) in numbered if precedence(a) < precedence(b)]
    if turned:
        yield f"a network that looks at the precedence alone serves classes in another order: {', '.join(turned)}"


def _uses(dscps: Sequence[int]) -> Iterator[str]:
    """Yields what each DSCP is used for, and last those that have no known use."""
    known = {dscp: use for dscp in dscps if (use := _USES.get(dscp) or _assured(dscp)) is not None}
    yield from (f"{dscp} ({use})" for dscp, use in known.items())
    if others := [str(dscp) for dscp in dscps if dscp not in known]:
        yield f"{', '.join(others)} (a standard may give {'it' if len(others) == 1 else 'them'} a meaning)"


def _assured(dscp: int) -> str | None:
    number, drop, odd = precedence(dscp), (dscp & 0b111) >> 1, dscp & 1
    return None if odd or not (1 <= number <= 4 and drop) else f"AF{number}{drop}, {_ASSURED[number - 1]}"
