"""Switches, their queues' proofs, and the bytes that their ports have sent by class.

Anybody may connect as a switch where OpenFlow has no TLS. So at most ``MOST_SWITCHES`` have series of their own, those
of the settings first, and at most ``MOST_PORTS`` ports.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from prometheus_client.core import Metric

from controller.api.calls.state import class_bytes
from controller.api.exposition.families import Rows, counters, gauge, gauges
from controller.api.services import Services
from controller.config.config import Config
from controller.dataplane.values import SwitchStatus
from controller.model import Host

MOST_SWITCHES = 256
MOST_PORTS = 512
Port = tuple[int, int]
"""A datapath id and the number of a port."""
Hosts = Mapping[str, Host]
_SWITCH = ("dpid",)
_PORT = ("dpid", "port", "host")


def network(services: Services) -> Iterator[Metric]:
    """Yields the families on switches and ports. Waits for the switches' counters."""
    is_enforced = services.config.enforcement.switches
    used = services.dataplane.switches() if is_enforced else ()
    yield gauge("trainyard_switches_ready", "Switches that are ready for rules", len(used))
    hosts = services.registry.hosts
    rows = switch_rows(services.config, hosts, services.dataplane.status())
    yield from _switches(rows, is_enforced=is_enforced)
    yield from _rules(services)
    yield counters(
        "trainyard_switch_class_bytes",
        "Bytes that a switch has sent by class; 'other' is all other traffic",
        ("dpid", "service_class"),
        [
            ((dpid, service_class), count)
            for dpid, classes in islice(sorted(class_bytes(services).items()), MOST_SWITCHES)
            for service_class, count in classes.items()
        ],
    )
    # The switches were asked just now.
    yield from _ports(services.config, hosts, services.dataplane.port_bytes(anew=False))


def switch_rows(config: Config, hosts: Hosts, statuses: Sequence[SwitchStatus]) -> dict[str, SwitchStatus | None]:
    """Returns the switches that have series, by datapath id; None: a host or a link names one that is not there."""
    named = {host.switch for host in hosts.values() if host.switch is not None}
    named |= {dpid for link in config.links for dpid in (link.a, link.b)}
    present = {status.dpid: status for status in statuses}
    others = sorted(present.keys() - named)
    return {f"{dpid:016x}": present.get(dpid) for dpid in [*sorted(named), *others][:MOST_SWITCHES]}


def _switches(rows: Mapping[str, SwitchStatus | None], *, is_enforced: bool) -> Iterator[Metric]:
    present = {dpid: status for dpid, status in rows.items() if status is not None}
    yield gauges(
        "trainyard_switch_connected",
        "1 while a switch that the settings name, or that has connected, is connected",
        _SWITCH,
        [((dpid,), status is not None and status.connected) for dpid, status in rows.items()],
    )
    yield gauges(
        "trainyard_switch_ready",
        "1 while a switch is ready for rules: its queues are proven, or need no proof; no sample where the setting "
        "enforce does not name switches",
        _SWITCH,
        [((dpid,), status is not None and status.ready) for dpid, status in rows.items() if is_enforced],
    )
    yield gauges(
        "trainyard_switch_unproven_ports",
        "Ports of a switch whose queues are not proven",
        _SWITCH,
        [((dpid,), sum(port.problem is not None for port in status.ports)) for dpid, status in present.items()],
    )
    yield gauges(
        "trainyard_switch_rules",
        "Rules that a switch holds for the controller",
        _SWITCH,
        [((dpid,), status.rules) for dpid, status in present.items()],
    )
    yield counters(
        "trainyard_switch_repairs",
        "How often rules or queues of a switch that somebody else had changed were put right",
        _SWITCH,
        [((dpid,), status.repairs) for dpid, status in present.items()],
    )


def _rules(services: Services) -> Iterator[Metric]:
    loop = services.loop
    yield gauge(
        "trainyard_degraded_to_marked",
        "1 while switches look at hosts' marks because the flows need more rules than table_budget",
        loop.planning.degraded is not None,
    )
    yield gauge(
        "trainyard_flow_rules",
        "Rules that the jobs' flows need at one switch, at most",
        loop.planning.fitted.rules if loop.planning.fitted is not None else 0,
    )
    yield gauge(
        "trainyard_table_budget_rules",
        "Rules that a switch may hold for the flows of jobs (table_budget)",
        services.config.table_budget,
    )


def _ports(config: Config, known: Hosts, sent: Mapping[Port, Mapping[int | None, int]]) -> Iterator[Metric]:
    hosts = {
        (host.switch, host.switch_port): name
        for name, host in known.items()
        if host.switch is not None and host.switch_port is not None
    }
    ports = sorted(sent)
    yield gauge(
        "trainyard_ports_left_out",
        f"Ports whose bytes are not here, because there are more than {MOST_PORTS}; GET /v1/history has them",
        max(0, len(ports) - MOST_PORTS),
    )
    yield counters(
        "trainyard_port_class_bytes",
        "Bytes that a port of a switch has sent by class; 'other' is all other traffic",
        (*_PORT, "service_class"),
        [
            ((*_labels(port, hosts), "other" if service_class is None else str(service_class)), count)
            for port in ports[:MOST_PORTS]
            for service_class, count in sent[port].items()
        ],
    )
    yield gauges(
        "trainyard_port_speed_bytes",
        "Bytes a second that a port of a switch can send, by the settings",
        _PORT,
        _speeds(config, known, ports[:MOST_PORTS], hosts),
    )


def _labels(port: Port, hosts: Mapping[Port, str]) -> tuple[str, str, str]:
    """Returns the labels of a port. The host is the one that is known there, or empty."""
    return f"{port[0]:016x}", str(port[1]), hosts.get(port, "")


def _speeds(config: Config, known: Hosts, ports: Sequence[Port], hosts: Mapping[Port, str]) -> Rows:
    rates: dict[Port, float] = {
        (host.switch, host.switch_port): host.ingress_bps
        for host in known.values()
        if host.switch is not None and host.switch_port is not None
    }
    for link in config.links:
        if link.rate_bps is not None:
            rates |= dict.fromkeys(((link.a, link.a_port), (link.b, link.b_port)), link.rate_bps)
    return [(_labels(port, hosts), rates[port] / 8) for port in ports if port in rates]
