"""Lets switches serve packets by a configuration of their own, without a rule of the controller, while an arm runs.

*plain* switches learn addresses and have one queue a port. *dscp* ones have a queue for each class and lead packets to
it by their DSCP, as an operator configures a switch that knows nothing of OpenFlow.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from controller.code_points import PRESETS, CodePoints
from topologies import limits, tools
from topologies.lab.results import Served

_TABLE = "table=0"
_BY_DSCP, _ANY = 10, 0
"""Priorities."""


class Network(Protocol):
    """The part of an emulation that is needed here."""

    @property
    def bridges(self) -> Sequence[str]:
        """The switches' names."""

    @property
    def dscp(self) -> str:
        """The preset of the classes' DSCPs."""

    def port_rates(self) -> Mapping[str, float]:
        """Every switch port's interface and its link's rate in bit/s."""


@contextlib.contextmanager
def served(network: Network, by: Served, classes: int) -> Iterator[None]:
    """Inside the context switches serve packets so. After it they have no rule and one queue a port.

    No controller may use the switches meanwhile. Raises OpenVSwitchError, subprocess.CalledProcessError.
    """
    if by == "controller":
        yield
        return
    rates = network.port_rates()
    if by == "dscp":
        limits.make_queues(rates, classes)
    else:
        limits.limit_ports(rates)
    limits.collect_rows()
    for bridge in network.bridges:
        _replace(bridge, rules(PRESETS[network.dscp].first(classes) if by == "dscp" else None))
    try:
        yield
    finally:
        for bridge in network.bridges:
            _replace(bridge, ())
        limits.limit_ports(rates)
        limits.collect_rows()


def rules(points: CodePoints | None) -> tuple[str, ...]:
    """Returns the rules of such a switch, as ``ovs-ofctl`` reads them. ``points``: it serves these; None: none."""
    by_dscp = {} if points is None else points.served()
    return (
        f"{_TABLE},priority={_ANY},actions=NORMAL",
        *(
            f"{_TABLE},priority={_BY_DSCP},{family},ip_dscp={dscp},actions=set_queue:{k + 1},NORMAL"
            for dscp, k in by_dscp.items()
            for family in ("ip", "ipv6")
        ),
        *([f"{_TABLE},priority={_BY_DSCP},arp,actions=set_queue:1,NORMAL"] if by_dscp else []),
    )


def _replace(bridge: str, wanted: Sequence[str]) -> None:
    """Give a switch these rules in place of all that it has. Raises subprocess.CalledProcessError."""
    tools.run(["ovs-ofctl", "-O", "OpenFlow13", "del-flows", bridge])
    if wanted:
        tools.run(["ovs-ofctl", "-O", "OpenFlow13", "add-flows", bridge, "-"], lines=wanted)
