"""The systems of switches, and the configuration of one as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from controller.switch_config import cumulus, eos, junos, linux, nxos, ovs, sonic
from controller.switch_config.plan import PlannedPort, Queue, StaticPlan
from controller.switch_config.stanza import Stanza, render


@dataclass(frozen=True, slots=True)
class System:
    """What a system is called, how its comments begin, and the usual name of a port by its number."""

    title: str
    mark: str
    port_name: Callable[[int], str]
    stanzas: Callable[[StaticPlan], Iterable[Stanza]]


SYSTEMS: Mapping[str, System] = MappingProxyType(
    {
        "sonic": System("SONiC", "#", lambda number: f"Ethernet{4 * (number - 1)}", sonic.stanzas),
        "eos": System("Arista EOS", "!", lambda number: f"Ethernet{number}", eos.stanzas),
        "nxos": System("Cisco NX-OS on Nexus 9000", "!", lambda number: f"Ethernet1/{number}", nxos.stanzas),
        "junos": System("Junos", "#", lambda number: f"et-0/0/{number}", junos.stanzas),
        "cumulus": System("Cumulus Linux", "#", lambda number: f"swp{number}", cumulus.stanzas),
        "ovs": System("Open vSwitch", "#", lambda number: f"eth{number}", ovs.stanzas),
        "linux": System("a router with Linux", "#", lambda number: f"eth{number}", linux.stanzas),
    }
)


def configuration(system: System, plan: StaticPlan) -> Iterator[str]:
    """Yields the lines of a switch's configuration."""
    return render(tuple(_head(system, plan)), system.stanzas(plan), system.mark)


def _head(system: System, plan: StaticPlan) -> Iterator[str]:
    yield f"Trainyard's queues by DSCP for {system.title}. A higher queue is served first:"
    yield from (f"- {_queue(queue)}" for queue in plan.queues)
    yield "Ports:"
    yield from (f"- {_port(port)}" for port in plan.ports)
    yield from (f"Note: {note}." for note in plan.notes)


def _queue(queue: Queue) -> str:
    dscps = "all other DSCPs" if queue.kind == "other" else f"DSCP {', '.join(map(str, queue.dscps))}"
    return f"queue {queue.number}: {queue.title} ({dscps}), floor {100 * queue.floor:.3g} % of the link"


def _port(port: PlannedPort) -> str:
    believed = "DSCPs are believed" if port.is_trusted else "DSCPs are not believed (untrusted_hosts)"
    return f"{port.number} {port.name}: {port.behind}, {port.rate_bps / 1e9:g} Gbit/s, {believed}"
