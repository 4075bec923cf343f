"""``GET /v1/network``: hosts, switches and links as a graph that a client can draw."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TypeVar

from controller.api.calls.state import all_problems, port_states
from controller.api.http import Call, Reply
from controller.api.live.sampler import port_name
from controller.api.services import Services
from controller.config.sections import LinkEntry
from controller.dataplane.values import SwitchStatus
from controller.model import Host, first_address
from controller.pieces import Steps
from controller.steps import in_steps
from controller.wire import LinkEnd, Network, NetworkHost, NetworkLink, NetworkSwitch

T = TypeVar("T")
Problems = Mapping[tuple[int, int], str]
"""Why a port is not ordered, by its switch's datapath id and its number."""


def read_network(services: Services, _call: Call) -> Reply:
    """Read the network as a graph: hosts, switches, links, their rates and load, and what is wrong."""
    hosts = services.registry.hosts
    statuses = {status.dpid: status for status in services.dataplane.status()}
    links = services.config.links
    named = {host.switch for host in hosts.values() if host.switch is not None}
    named |= {dpid for link in links for dpid in (link.a, link.b)}
    problems = _problems_of(statuses.values())
    of_hosts = (_of_host(services, host, problems) for host in hosts.values())
    between = (_between(services, link, problems) for link in links)
    return Reply.of(
        Network(
            hosts=in_steps(_each(_hosts(services))),
            switches=tuple(_switch(dpid, statuses.get(dpid)) for dpid in sorted(statuses.keys() | named)),
            links=in_steps(_each(chain(filter(None, of_hosts), between))),
            problems=tuple(all_problems(services)),
        )
    )


def _each(parts: Iterable[T]) -> Steps[tuple[T, ...]]:
    """Returns the parts; others may go on between them."""
    made = []
    for part in parts:
        made.append(part)
        yield
    return tuple(made)


def _hosts(services: Services) -> Iterator[NetworkHost]:
    for name, interfaces in services.registry.servers.items():
        yield NetworkHost(
            name=name,
            address=first_address(interfaces),
            alive=services.registry.host_alive(name),
        )


def _switch(dpid: int, status: SwitchStatus | None) -> NetworkSwitch:
    return NetworkSwitch(
        dpid=f"{dpid:016x}",
        connected=status.connected if status is not None else False,
        ready=status.ready if status is not None else False,
        reason=status.reason if status is not None else "not connected",
        ports=port_states(status) if status is not None else (),
        problems=status.problems if status is not None else (),
    )


def _of_host(services: Services, host: Host, problems: Problems) -> NetworkLink | None:
    """Returns the link of an interface; None where it is not known where it is attached."""
    if host.switch is None or host.switch_port is None:
        return None
    at = (host.switch, host.switch_port)
    to_host = _load(services, *at)
    return NetworkLink(
        a=LinkEnd(node=host.server, port=None, interface=host.interface if host.name != host.server else None),
        b=LinkEnd(node=f"{host.switch:016x}", port=host.switch_port),
        a_to_b_bps=host.egress_bps,
        b_to_a_bps=host.ingress_bps,
        a_to_b_load_bps=None,
        b_to_a_load_bps=to_host,
        a_to_b_total_bps=services.history.received_bps(port_name(*at)),
        b_to_a_total_bps=_total(to_host),
        problems=_problems(problems, at),
    )


def _between(services: Services, link: LinkEntry, problems: Problems) -> NetworkLink:
    a, b = (link.a, link.a_port), (link.b, link.b_port)
    a_load, b_load = _load(services, *a), _load(services, *b)
    return NetworkLink(
        a=LinkEnd(node=f"{link.a:016x}", port=link.a_port),
        b=LinkEnd(node=f"{link.b:016x}", port=link.b_port),
        a_to_b_bps=link.rate_bps,
        b_to_a_bps=link.rate_bps,
        a_to_b_load_bps=a_load,
        b_to_a_load_bps=b_load,
        a_to_b_total_bps=_total(a_load),
        b_to_a_total_bps=_total(b_load),
        problems=_problems(problems, a, b),
    )


def _load(services: Services, dpid: int, port: int) -> dict[str, float] | None:
    """Returns what a switch sends out of a port, in bit/s by class; None where it is not counted."""
    return dict(services.history.port_bps(port_name(dpid, port))) or None


def _total(load: Mapping[str, float] | None) -> float | None:
    return sum(load.values()) if load is not None else None


def _problems_of(statuses: Iterable[SwitchStatus]) -> Problems:
    """Returns why ports are not ordered, by datapath id and port number."""
    return {
        (status.dpid, proof.port): proof.problem
        for status in statuses
        for proof in status.ports
        if proof.problem is not None
    }


def _problems(problems: Problems, *ends: tuple[int, int]) -> tuple[str, ...]:
    return tuple(problems[end] for end in ends if end in problems)
