"""Which jobs meet at which host's link, and who is served first there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from controller.model import BITS_PER_BYTE, Direction, Port
from controller.wire import JobState, Network, NetworkLink

Load = Mapping[Port, float]
"""The seconds for which one iteration of a job keeps each port busy."""
Rates = Mapping[Port, float]
"""The rate of each port in bit/s."""
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
    """The port that a job keeps busy for longest, and the jobs that use it and are served before it, first one first.

    Of several such ports it is the one with most jobs before. ``shares``: how many jobs beside it use the port.
    """

    port: Port
    before: tuple[str, ...]
    shares: int


def rates_of(network: Network | None) -> dict[Port, float]:
    """Returns the rates of the hosts' links, as far as they are known."""
    if network is None:
        return {}
    hosts = {host.name for host in network.hosts}
    rates = {}
    for link in network.links:
        if link.a.node in hosts:
            for direction, rate in ((Direction.EGRESS, link.a_to_b_bps), (Direction.INGRESS, link.b_to_a_bps)):
                if rate is not None:
                    rates[Port(link.a.node, direction)] = rate
    return rates


def load_of(job: JobState, rates: Rates) -> dict[Port, float]:
    """Returns the load of a job by its declared demand; without one, by the measured demand."""
    load: dict[Port, float] = {}
    for demand in job.spec.demand or job.measured_demand:
        for port in (Port(demand.src, Direction.EGRESS), Port(demand.dst, Direction.INGRESS)):
            seconds = demand.bytes * BITS_PER_BYTE / rates.get(port, USUAL_BPS)
            if seconds > 0:
                load[port] = load.get(port, 0.0) + seconds
    return load


def waits(classes: Iterable[Sequence[str]], loads: Mapping[str, Load]) -> dict[str, Wait]:
    """Returns where each job waits. A job without load waits nowhere, and is left out.

    ``classes`` are the jobs of each class, class 0 first. Jobs of one class share, so none of them is before another.
    """
    users: dict[Port, list[str]] = {}
    before: dict[str, dict[Port, int]] = {}
    busy = [[job for job in band if loads.get(job)] for band in classes]
    for band in busy:
        for job in band:
            before[job] = {port: len(users.get(port, ())) for port in loads[job]}
        for job in band:
            for port in loads[job]:
                users.setdefault(port, []).append(job)
    found = {}
    for job, counts in before.items():
        port = max(counts, key=lambda each: (loads[job][each], counts[each], each.host, each.direction))
        found[job] = Wait(port, tuple(users[port][: counts[port]]), len(users[port]) - 1)
    return found
