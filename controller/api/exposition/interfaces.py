"""What hosts' interfaces have carried, and how much of it no TCP connection explains.

At most ``MOST_INTERFACES`` have series, because an agent names them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from prometheus_client.core import Metric

from controller.api.exposition.families import Rows, counters, gauge, gauges
from controller.api.services import Services
from controller.api.unseen import Unseen
from controller.declared.batch import InterfacePart

MOST_INTERFACES = 1024
_LABELS = ("host", "interface", "direction")
_Named = tuple[str, InterfacePart]


def interfaces(services: Services) -> Iterator[Metric]:
    """Yields the families on the interfaces of hosts."""
    registry = services.registry
    every = ((host, part) for host in registry.servers for part in registry.interfaces(host))
    named = list(islice(every, MOST_INTERFACES))
    yield counters(
        "trainyard_interface_bytes",
        "Bytes that an interface of a host, or a port of an RDMA device, has carried while jobs ran there",
        _LABELS,
        _both(named, "sent", "received"),
    )
    yield counters(
        "trainyard_interface_unseen_bytes",
        "Of these, bytes that no TCP connection of the host explains, at least, while there were enough to tell",
        _LABELS,
        _both(named, "unseen_sent", "unseen_received"),
    )
    at = Unseen.now(registry).hosts.values()
    carrying = {(each.host, part.interface) for each in at for part in each.interfaces}
    yield gauges(
        "trainyard_interface_unseen",
        "1 while an interface carries bytes of jobs that no TCP connection of the host explains",
        ("host", "interface"),
        [((host, part.interface), (host, part.interface) in carrying) for host, part in named],
    )
    yield gauge("trainyard_unseen_hosts", "Hosts with jobs of which an interface carries such bytes", len(at))


def _both(named: list[_Named], sent: str, received: str) -> Rows:
    """Returns a row for each interface and direction."""
    fields = (("sent", sent), ("received", received))
    return [((host, part.interface, way), getattr(part, field)) for host, part in named for way, field in fields]
