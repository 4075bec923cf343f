"""Which jobs meet at which host's link, and who is served first there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from controller.endpoints.servers import Servers
from controller.endpoints.spread import spread
from controller.model import BITS_PER_BYTE, Demand, Direction, Host, Port, endpoint
from controller.wire import JobState, Network, NetworkLink

Load = Mapping[Port, float]
"""The seconds for which one iteration of a job keeps each port busy."""
USUAL_BPS = 1e9
"""Take this rate for a port whose rate is not known, or may not be seen."""


def cannot_meet(loads: Iterable[Load | None], network: Network | None) -> bool:
    """Returns whether no two jobs with these loads can meet anywhere, so that no order helps any of them.

    It is False where that is not known: of a job without load, where the network may not be seen, and where links
    between switches may be full.
    """
    known = list(loads)
    if network is None or not known or not all(known) or any(_is_inner(link) for link in network.links):
        return False
    ports = [port for load in known for port in load or ()]
    return len(ports) == len(set(ports))


def _is_inner(link: NetworkLink) -> bool:
    """Returns whether a link joins two switches: only their ends have port numbers."""
    return link.a.port is not None and link.b.port is not None


class Wait(NamedTuple):
    """The port where a job waits for longest, and the jobs that use it and are served before it, first one first.

    ``shares``: how many other jobs of its class use the port.
    """

    port: Port
    before: tuple[str, ...]
    shares: int


def interfaces_of(network: Network | None) -> Servers:
    """Returns the interfaces of the hosts with their rates, as far as they are known."""
    if network is None:
        return Servers({})
    hosts = {host.name for host in network.hosts}
    found = {}
    for link in network.links:
        if link.a.node in hosts:
            name = endpoint(link.a.node, link.a.interface)
            found[name] = Host(name, link.b_to_a_bps or USUAL_BPS, link.a_to_b_bps or USUAL_BPS)
    return Servers(found)


def load_of(job: JobState, interfaces: Servers) -> dict[Port, float]:
    """Returns the load of a job by its declared demand; without one, or where it counts epochs, by the measured one."""
    load: dict[Port, float] = {}
    declared = job.spec.demand if job.spec.unit == "iteration" or not job.measured_demand else ()
    given = [Demand(demand.src, demand.dst, demand.bytes) for demand in declared or job.measured_demand]
    for src, dst, amount in spread(interfaces, given):
        for port in (Port(src, Direction.EGRESS), Port(dst, Direction.INGRESS)):
            seconds = amount * BITS_PER_BYTE / _rate_bps(interfaces, port)
            if seconds > 0:
                load[port] = load.get(port, 0.0) + seconds
    return load


def _rate_bps(interfaces: Servers, port: Port) -> float:
    known = interfaces.of(port.host)
    return known[0].rate_bps(port.direction) if known else USUAL_BPS


def waits(
    classes: Iterable[Sequence[str]], loads: Mapping[str, Load], longest: Mapping[str, str] = MappingProxyType({})
) -> dict[str, Wait]:
    """Returns where each job waits. A job without load waits nowhere, and is left out.

    ``classes`` are the jobs of each class, class 0 first. Jobs of one class share, so none of them is before another.
    ``longest`` names the port of each job as the plan has chosen it. Where the plan is not seen, it is the port that
    the job keeps busy for longest, and of several such ports the one with most jobs before.
    """
    users: dict[Port, list[str]] = {}
    before: dict[str, dict[Port, int]] = {}
    until: dict[str, dict[Port, int]] = {}
    busy = [[job for job in band if loads.get(job)] for band in classes]
    for band in busy:
        for job in band:
            before[job] = {port: len(users.get(port, ())) for port in loads[job]}
        for job in band:
            for port in loads[job]:
                users.setdefault(port, []).append(job)
        for job in band:
            until[job] = {port: len(users[port]) for port in loads[job]}
    found = {}
    for job, counts in before.items():
        by_name = {f"{each.host} {each.direction}": each for each in counts}
        port = by_name.get(longest.get(job, "")) or max(
            counts, key=lambda each: (loads[job][each], counts[each], each.host, each.direction)
        )
        found[job] = Wait(port, tuple(users[port][: counts[port]]), until[job][port] - counts[port] - 1)
    return found
