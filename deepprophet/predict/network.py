"""The network that an iteration is predicted on: hosts with their links, latency, what other jobs load. Values, from
YAML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from controller.wire import DemandSpec, Message, Name
from deepprophet.costs import values_file

GOODPUT = 1448 / 1538
"""This share of a link's rate is left for data: of a full frame of Ethernet, with its preamble, checksum and gap, what
is neither a header of IP nor of TCP with its timestamps (RFC 894, RFC 9293, RFC 7323; IEEE 802.3)."""

Port = tuple[str, bool]
"""A host's link: its name, and True for what it sends, False for what it gets."""

_Rate = Annotated[float, Field(ge=1e3, le=1e15)]


class HostSpec(Message):
    """A server. ``machine``: hosts of one machine (containers, namespaces) share its ``cores``; None: a machine a
    host.
    """

    name: Name
    ingress_bps: _Rate = 1e9
    egress_bps: _Rate = 1e9
    cores: Annotated[int, Field(ge=1)] | None = None
    machine: Name | None = None


class Load(Message):
    """What other jobs send from one host to another, in bit/s, and in how many connections."""

    src: Name
    dst: Name
    bps: Annotated[float, Field(ge=0, le=1e15)]
    flows: Annotated[int, Field(ge=1, le=100_000)] = 1


class NetworkSpec(Message):
    """The whole file. ``workers`` and ``ps`` say which host each stands on; a host may have several."""

    hosts: Annotated[tuple[HostSpec, ...], Field(min_length=1, max_length=4096, strict=False)]
    latency_seconds: Annotated[float, Field(ge=0, le=10)] = 50e-6
    loads: Annotated[tuple[Load, ...], Field(strict=False)] = ()
    workers: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    ps: Annotated[tuple[Name, ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _names_its_hosts(self) -> Self:
        names = [host.name for host in self.hosts]
        if len(set(names)) < len(names):
            raise ValueError("two hosts have the same name")
        used = [*self.workers, *self.ps, *(end for load in self.loads for end in (load.src, load.dst))]
        if unknown := sorted(set(used) - set(names)):
            raise ValueError(f"{unknown[0]} is none of the hosts; there are {', '.join(names[:12])}")
        return self

    def by_name(self) -> dict[str, HostSpec]:
        """The hosts by their names."""
        return {host.name: host for host in self.hosts}


def uniform(count: int, rate_bps: float, latency_seconds: float) -> NetworkSpec:
    """So many equal hosts, one worker each; the first is a parameter server's too where there is one."""
    hosts = tuple(HostSpec(name=f"h{n + 1}", ingress_bps=rate_bps, egress_bps=rate_bps) for n in range(count))
    return NetworkSpec(hosts=hosts, latency_seconds=latency_seconds)


def at_rate(network: NetworkSpec, rate_bps: float) -> NetworkSpec:
    """The same network with all links at a rate."""
    hosts = tuple(host.model_copy(update={"ingress_bps": rate_bps, "egress_bps": rate_bps}) for host in network.hosts)
    return network.model_copy(update={"hosts": hosts})


@dataclass(frozen=True, slots=True)
class Placement:
    """Where the job's processes run: a host's name each."""

    workers: tuple[str, ...]
    ps: tuple[str, ...] = ()


def place(network: NetworkSpec, workers: int, architecture: str) -> Placement:
    """Workers on the hosts that the network names for them, in turn; parameter servers likewise.

    A network that names no server's host has one beside the workers: on the first host that has no worker, else on the
    last.
    """
    order = network.workers or tuple(host.name for host in network.hosts)
    chosen = tuple(order[number % len(order)] for number in range(workers))
    if architecture != "ps" or workers < 1:
        return Placement(chosen)
    if network.ps:
        return Placement(chosen, network.ps)
    taken = set(chosen)
    free = [host.name for host in network.hosts if host.name not in taken]
    return Placement(chosen, (free[0] if free else network.hosts[-1].name,))


def seconds(left: Mapping[Port, float], demand: Sequence[DemandSpec]) -> float:
    """How long links with so much left (bit/s) need for bytes that are sent at once: the busiest link's time."""
    sent: dict[Port, float] = {}
    for part in demand:
        for port in ((part.src, True), (part.dst, False)):
            sent[port] = sent.get(port, 0.0) + part.bytes
    return max((size * 8 / left[port] for port, size in sent.items()), default=0.0)


def left_bps(network: NetworkSpec) -> dict[Port, float]:
    """What other jobs leave of each link, for data: the rest, but no less than a fair share beside their flows."""
    loads: dict[Port, list[Load]] = {}
    for load in network.loads:
        if load.src != load.dst:
            loads.setdefault((load.src, True), []).append(load)
            loads.setdefault((load.dst, False), []).append(load)
    left = {}
    for host in network.hosts:
        for out, rate in ((True, host.egress_bps), (False, host.ingress_bps)):
            crossing = loads.get((host.name, out), [])
            rest = rate - sum(load.bps for load in crossing)
            share = rate / (1 + sum(load.flows for load in crossing))
            left[host.name, out] = max(rest, share) * GOODPUT
    return left


def read(path: Path) -> NetworkSpec:
    """A network file, YAML or JSON. Raises InputError, with the line and the field."""
    return values_file.read(path, NetworkSpec, "a network: hosts, at least")
