"""``GET /v1/network``: hosts, switches and links as a graph that a client can draw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from controller.api.calls.state import all_problems, port_states
from controller.api.http import Call, Reply
from controller.api.live.sampler import port_name
from controller.api.services import Services
from controller.config.sections import LinkEntry
from controller.dataplane.values import SwitchStatus
from controller.model import Host
from controller.wire import LinkEnd, Network, NetworkHost, NetworkLink, NetworkSwitch


def read_network(services: Services, _call: Call) -> Reply:
    """Read the network as a graph: hosts, switches, links, their rates and load, and what is wrong."""
    hosts = services.registry.hosts
    statuses = {status.dpid: status for status in services.dataplane.status()}
    links = services.config.links
    named = {host.switch for host in hosts.values() if host.switch is not None}
    named |= {dpid for link in links for dpid in (link.a, link.b)}
    return Reply.of(
        Network(
            hosts=tuple(
                NetworkHost(name=name, address=host.address, alive=services.registry.host_alive(name))
                for name, host in hosts.items()
            ),
            switches=tuple(_switch(dpid, statuses.get(dpid)) for dpid in sorted(statuses.keys() | named)),
            links=(*_of_hosts(services, hosts, statuses), *(_between(services, link, statuses) for link in links)),
            problems=tuple(all_problems(services)),
        )
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


def _of_hosts(
    services: Services, hosts: Mapping[str, Host], statuses: Mapping[int, SwitchStatus]
) -> Iterator[NetworkLink]:
    for host in hosts.values():
        if host.switch is None or host.switch_port is None:
            continue
        yield NetworkLink(
            a=LinkEnd(node=host.name, port=None),
            b=LinkEnd(node=f"{host.switch:016x}", port=host.switch_port),
            a_to_b_bps=host.egress_bps,
            b_to_a_bps=host.ingress_bps,
            a_to_b_load_bps=None,
            b_to_a_load_bps=_load(services, host.switch, host.switch_port),
            problems=_problems(statuses, (host.switch, host.switch_port)),
        )


def _between(services: Services, link: LinkEntry, statuses: Mapping[int, SwitchStatus]) -> NetworkLink:
    a, b = (link.a, link.a_port), (link.b, link.b_port)
    return NetworkLink(
        a=LinkEnd(node=f"{link.a:016x}", port=link.a_port),
        b=LinkEnd(node=f"{link.b:016x}", port=link.b_port),
        a_to_b_bps=link.rate_bps,
        b_to_a_bps=link.rate_bps,
        a_to_b_load_bps=_load(services, *a),
        b_to_a_load_bps=_load(services, *b),
        problems=_problems(statuses, a, b),
    )


def _load(services: Services, dpid: int, port: int) -> dict[str, float] | None:
    """Returns what a switch sends out of a port, in bit/s by class; None where it is not counted."""
    return dict(services.history.port_bps(port_name(dpid, port))) or None


def _problems(statuses: Mapping[int, SwitchStatus], *ends: tuple[int, int]) -> tuple[str, ...]:
    return tuple(
        proof.problem
        for dpid, number in ends
        if dpid in statuses
        for proof in statuses[dpid].ports
        if proof.port == number and proof.problem is not None
    )
