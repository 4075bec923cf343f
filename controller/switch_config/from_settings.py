"""From the settings to what the configuration of one switch has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from controller.config.config import Config
from controller.switch_config.plan import ROCE, PlanError, PlannedPort, StaticPlan, plan_queues

UNKNOWN_BPS = 1e9
"""The rate of a port for which the settings name none. It is also their default for a host."""

_LINK_NOTE = "the settings name no rate_bps for a link here, so 1 Gbit/s stands there: set it in links"
_NO_PORT_NOTE = (
    "the settings name no port of this switch: port 1 with 1 Gbit/s stands for each; set switch and port in hosts, "
    "and links"
)
_NAME_NOTE = "the names of ports follow from their numbers in the settings; where they are others, give --port N=NAME"
_LOST_NOTE = "where {} is plugged in is not known, so its port is not here; set its switch and port in hosts"
_UNMARKED_NOTE = "no host marks packets, since enforce is without hosts, so all traffic has the queue of other traffic"
_OWN_NOTE = (
    "identity is dscp, so jobs have DSCPs of their own, which a static configuration cannot map anew with each plan: "
    "this one is for the DSCPs of classes (enforce: [hosts], without identity)"
)
_SHARED_NOTE = (
    "other programs use DSCP {}, too, and their packets are served with the jobs; list hosts in untrusted_hosts that "
    "must not set them"
)


def static_plan(
    config: Config, dpid: int | None, names: Mapping[int, str], default: Callable[[int], str]
) -> StaticPlan:
    """Returns what a switch's configuration says. Raises PlanError.

    ``dpid`` None is the only switch of the settings. ``names`` are names of ports by number; ``default`` returns the
    name of any other port.
    """
    dpid = _chosen(config, dpid)
    points, floors = config.dscp.code_points(config.classes), config.floors
    queues = plan_queues(
        points,
        class_floor=floors.job_class,
        other_floor=floors.other,
        lossless=ROCE if config.dscp.preset == "dcb" else None,
    )
    known = {port.number: port for port in _ports(config, dpid)} if dpid is not None else {}
    ports = [known[number] for number in sorted(known)] or [PlannedPort(1, "", "any host", UNKNOWN_BPS, True)]
    if unknown := sorted(set(names) - {port.number for port in ports}):
        raise PlanError(f"--port {unknown[0]}: the switch has no such port; it has: {_listed(ports)}")
    named = tuple(port.named(names.get(port.number) or default(port.number)) for port in ports)
    return StaticPlan(queues, named, tuple(_notes(config, dpid, known=bool(known), named=len(names) == len(ports))))


def _chosen(config: Config, dpid: int | None) -> int | None:
    """Returns the switch that is meant; None where the settings name none. Raises PlanError."""
    switches = {host.switch for host in config.host_map().values() if host.switch is not None}
    switches |= {end for link in config.links for end in (link.a, link.b)}
    known = ", ".join(f"{switch:#x}" for switch in sorted(switches))
    if dpid is not None and dpid not in switches:
        raise PlanError(f"--switch {dpid:#x}: the settings have no such switch; they have: {known or 'none'}")
    if dpid is None and len(switches) > 1:
        raise PlanError(f"the settings have several switches; choose one by --switch: {known}")
    return dpid if dpid is not None else next(iter(switches), None)


def _ports(config: Config, dpid: int) -> Iterator[PlannedPort]:
    for host in config.host_map().values():
        if host.switch == dpid and host.switch_port is not None:
            trusted = host.server not in config.untrusted_hosts
            yield PlannedPort(host.switch_port, "", f"host {host.name}", host.ingress_bps, trusted)
    for link in config.links:
        for end, number, far in ((link.a, link.a_port, link.b), (link.b, link.b_port, link.a)):
            if end == dpid:
                yield PlannedPort(number, "", f"switch {far:#x}", link.rate_bps or UNKNOWN_BPS, True)


def _notes(config: Config, dpid: int | None, *, known: bool, named: bool) -> Iterator[str]:
    """Yields what an operator must know of the plan."""
    if not known:
        yield _NO_PORT_NOTE
    if not named:
        yield _NAME_NOTE
    lost = [host.name for host in config.host_map().values() if host.switch_port is None]
    if lost:
        yield _LOST_NOTE.format(lost[0] + (f" (and {len(lost) - 1} more)" if len(lost) > 1 else ""))
    if any(link.rate_bps is None and dpid in (link.a, link.b) for link in config.links):
        yield _LINK_NOTE
    if not config.enforcement.hosts:
        yield _UNMARKED_NOTE
    if config.enforcement.has_own_dscps:
        yield _OWN_NOTE
    if shared := config.dscp.code_points(config.classes).shared:
        yield _SHARED_NOTE.format(", ".join(map(str, sorted(shared))))


def _listed(ports: list[PlannedPort]) -> str:
    return ", ".join(str(port.number) for port in ports)
