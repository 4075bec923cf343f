"""Which jobs meet at which host's link, and who is served first there. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from controller.model import BITS_PER_BYTE, Direction, Port
from controller.wire import JobState, Network

Load = Mapping[Port, float]
"""The seconds for which one iteration of a job keeps each port busy."""
Rates = Mapping[Port, float]
"""The rate of each port in bit/s."""
USUAL_BPS = 1e9
"""Take this rate for a port whose rate is not known, or may not be seen."""


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
