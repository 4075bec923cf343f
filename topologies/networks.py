"""Networks to emulate: ``testbed`` (servers on one switch, or on one a rail) and ``leaf_spine``. Every link is limited
at both ends.

The lab uses them, and so can Mininet's own command, without a controller or with any:

    sudo mn --custom topologies/networks.py --topo testbed,13 --controller remote
    sudo mn --custom topologies/networks.py --topo testbed,4,rails=2,addresses=both --controller remote
    sudo mn --custom topologies/networks.py --topo leaf_spine,4,2,4,link_bps=50000000 --controller remote

Without rules the switches forward nothing (they fail secure). ``leaf_spine`` has loops, so it needs a controller that
computes paths (Trainyard's ``forwarding: paths``). Where the controller's ``links`` have a ``rate_bps``, it limits them
too. The lab writes all this into the settings of its controller.
"""

from __future__ import annotations

import inspect
import logging
import math
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import get_args

from mininet.topo import Topo

# The import of Mininet has made its own logger class, with a level of its own, the class of all later loggers.
logging.setLoggerClass(logging.Logger)

_frame = inspect.currentframe()
if _frame is not None and __name__ != "topologies.networks":
    # Mininet executes this file without importing it: the tree around it is found by the file's name.
    sys.path.append(str(Path(_frame.f_code.co_filename).resolve().parent.parent))

from controller.code_points import PRESETS, CodePoints  # noqa: E402 (the path above has to come first)
from topologies import management  # noqa: E402 (the path above has to come first)
from topologies.experiments.addressing import MOST_RAILS, Families, of_host, with_prefix  # noqa: E402 (as above)
from topologies.nodes import DEFAULT_SEGMENTS, LimitedSwitch, Server, queue_packets  # noqa: E402 (as above)

DEFAULT_LINK_BPS = 100e6
DEFAULT_QUEUES = 8
DEFAULT_DSCP = "pool-2"
DEFAULT_ADDRESSES = "ipv4"
LEAST_SEGMENTS, MOST_SEGMENTS = 2, 42
MOST_PACKETS = 65536
LEAST_TIMEOUT, MOST_TIMEOUT = 0.2, 60.0
MOST_HOSTS = management.LARGEST
LEAST_BPS, MOST_BPS = 1e5, 1e11


class TopologyError(ValueError):
    """There is no such network. The message says what would be right."""


class Testbed(Topo):
    """``servers`` hosts h1..hN on a switch for each of ``rails``: rail 0 is s1. Server i is on port i of each.

    Its interface on rail r is hi-ethr. The switches are not linked, as the rails of GPU servers are not at their first
    switches. ``addresses`` are the families of the hosts' addresses. Rates are in bit/s. A packet has ``segments`` full
    frames at most. A queue of a port holds ``port_packets`` of them; 0 stands for a few hundred KB.
    TCP sends nothing again before ``rto_min_seconds``; 0 stands for Linux's least time.
    """

    def build(  # noqa: PLR0917 (Mininet's command gives them by position)
        self,
        servers: int = 13,
        link_bps: float = DEFAULT_LINK_BPS,
        queues: int = DEFAULT_QUEUES,
        datapath: str = "kernel",
        dscp: str = DEFAULT_DSCP,
        rails: int = 1,
        addresses: str = DEFAULT_ADDRESSES,
        segments: int = DEFAULT_SEGMENTS,
        port_packets: int = 0,
        rto_min_seconds: float = 0,
    ) -> None:
        """Add the hosts, switches and links. Mininet calls this. Raises TopologyError."""
        servers, points = _count("servers", servers, 1, MOST_HOSTS), _points(dscp, queues)
        rails, segments = _count("rails", rails, 1, MOST_RAILS), _segments(segments)
        rto_min = _rto_min(rto_min_seconds)
        packets = _packets(port_packets, datapath, segments)
        self.dscp, self.addresses = dscp, _families(addresses)
        rate = _rate("link_bps", link_bps)
        rates = dict.fromkeys(range(1, servers + 1), rate)
        for switch in range(1, rails + 1):
            _add_switch(self, switch, rates, datapath=datapath, packets=packets)
        for i in range(1, servers + 1):
            _add_server(
                self,
                i,
                rails=rails,
                link_bps=rate,
                points=points,
                datapath=datapath,
                segments=segments,
                rto_min_seconds=rto_min,
            )
            for rail in range(rails):
                self.addLink(f"h{i}", f"s{rail + 1}", port1=rail, port2=i, addr1=_mac(i, rail))


class LeafSpine(Topo):
    """``leaves`` switches with ``servers_per_leaf`` hosts each, every one linked to all ``spines`` switches.

    Leaf l is switch l, spine s is switch leaves + s. A leaf's servers are on its ports 1..n, spine s on its port
    n + s; leaf l is on every spine's port l. With ``uplink_bps`` 0 the uplinks have the rate of the servers' links.
    ``segments``, ``port_packets`` and ``rto_min_seconds`` are those of ``Testbed``.
    """

    def build(  # noqa: PLR0917 (Mininet's command gives them by position)
        self,
        leaves: int = 2,
        spines: int = 2,
        servers_per_leaf: int = 4,
        link_bps: float = DEFAULT_LINK_BPS,
        uplink_bps: float = 0,
        queues: int = DEFAULT_QUEUES,
        datapath: str = "kernel",
        dscp: str = DEFAULT_DSCP,
        addresses: str = DEFAULT_ADDRESSES,
        segments: int = DEFAULT_SEGMENTS,
        port_packets: int = 0,
        rto_min_seconds: float = 0,
    ) -> None:
        """Add the hosts, switches and links. Mininet calls this. Raises TopologyError."""
        leaves, spines = _count("leaves", leaves, 1, MOST_HOSTS), _count("spines", spines, 1, MOST_HOSTS)
        each, points = _count("servers_per_leaf", servers_per_leaf, 1, MOST_HOSTS), _points(dscp, queues)
        _count("servers, of all leaves together", leaves * each, 1, MOST_HOSTS)
        self.dscp, self.addresses, segments = dscp, _families(addresses), _segments(segments)
        packets, rto_min = _packets(port_packets, datapath, segments), _rto_min(rto_min_seconds)
        down = _rate("link_bps", link_bps)
        up = _rate("uplink_bps", uplink_bps, for_zero=down)
        for leaf in range(1, leaves + 1):
            rates = {n: down if n <= each else up for n in range(1, each + spines + 1)}
            _add_switch(self, leaf, rates, datapath=datapath, packets=packets)
        for spine in range(leaves + 1, leaves + spines + 1):
            rates = dict.fromkeys(range(1, leaves + 1), up)
            _add_switch(self, spine, rates, datapath=datapath, packets=packets)
        for leaf in range(1, leaves + 1):
            for n in range(1, each + 1):
                i = (leaf - 1) * each + n
                _add_server(
                    self,
                    i,
                    rails=1,
                    link_bps=down,
                    points=points,
                    datapath=datapath,
                    segments=segments,
                    rto_min_seconds=rto_min,
                )
                self.addLink(f"h{i}", f"s{leaf}", port1=0, port2=n, addr1=_mac(i, 0))
            for spine in range(1, spines + 1):
                self.addLink(f"s{leaf}", f"s{leaves + spine}", port1=each + spine, port2=leaf)


def _add_switch(
    topo: Testbed | LeafSpine, number: int, rates_bps: Mapping[int, float], *, datapath: str, packets: int
) -> None:
    topo.addSwitch(
        f"s{number}",
        cls=LimitedSwitch,
        dpid=f"{number:016x}",
        datapath=datapath,
        rates_bps=rates_bps,
        packets=packets,
    )


def _add_server(
    topo: Testbed | LeafSpine,
    number: int,
    *,
    rails: int,
    link_bps: float,
    points: CodePoints,
    datapath: str,
    segments: int,
    rto_min_seconds: float,
) -> None:
    addresses = tuple(of_host(topo.addresses, number, rail) for rail in range(rails))
    topo.addHost(
        f"h{number}",
        cls=Server,
        # Mininet's own commands, such as pingall, know only this one.
        ip=next((with_prefix(address) for address in addresses[0] if ":" not in address), None),
        link_bps=link_bps,
        points=points,
        addresses=addresses,
        segments=segments,
        rto_min_seconds=rto_min_seconds,
        offload=datapath != "user",
    )


def _mac(number: int, rail: int) -> str:
    """Return the MAC address of a host's interface."""
    return f"02:00:00:00:{rail:02x}:{number:02x}"


def _count(name: str, given: object, least: int, most: int) -> int:
    """Return a count, which Mininet's command gives as text. Raises TopologyError."""
    try:
        count = int(str(given))
    except ValueError:
        count = least - 1
    if not least <= count <= most:
        raise TopologyError(f"{name}: {given} is not a whole number from {least} to {most}")
    return count


def _segments(given: object) -> int:
    """Return the segments of a packet. Raises TopologyError."""
    return _count("segments", given, LEAST_SEGMENTS, MOST_SEGMENTS)


def _packets(given: object, datapath: str, segments: int) -> int:
    """Return how many packets a queue of a switch's port holds; given 0, the default. Raises TopologyError."""
    return _count("port_packets", given, 0, MOST_PACKETS) or queue_packets(datapath, segments)


def _rto_min(given: object) -> float:
    """Return the least retransmission timeout in seconds; 0 is Linux's. Raises TopologyError."""
    try:
        seconds = float(str(given))
    except ValueError:
        seconds = math.nan
    if seconds != 0 and not LEAST_TIMEOUT <= seconds <= MOST_TIMEOUT:
        raise TopologyError(f"rto_min_seconds: {given} is not from {LEAST_TIMEOUT} to {MOST_TIMEOUT} s")
    return seconds


def _points(dscp: str, queues: object) -> CodePoints:
    """Return the DSCPs of the classes of so many queues, by the name of a preset. Raises TopologyError."""
    classes = _count("queues", queues, 2, 8) - 1
    if dscp not in PRESETS:
        raise TopologyError(f"dscp: there is no preset {dscp}; there are: {', '.join(PRESETS)}")
    return PRESETS[dscp].first(classes)


def _families(given: str) -> Families:
    """Return the families of a network's addresses. Raises TopologyError."""
    for families in get_args(Families):
        if families == given:
            return families  # type: ignore[no-any-return]  # get_args does not say what it returns
    raise TopologyError(f"addresses: there is no {given}; there are: {', '.join(get_args(Families))}")


def _rate(name: str, given: object, *, for_zero: float = 0.0) -> float:
    """Return a rate in bit/s, with ``for_zero`` in the place of 0. Raises TopologyError."""
    try:
        rate = float(str(given)) or for_zero
    except ValueError:
        rate = math.nan
    if not LEAST_BPS <= rate <= MOST_BPS:
        raise TopologyError(f"{name}: {given} is not a rate from {LEAST_BPS:.0f} to {MOST_BPS:.0f} bit/s")
    return rate


def _for_command(name: str, network: Callable[..., Topo]) -> Callable[..., Topo]:
    """Return ``network`` with its errors as SystemExit.

    That is the only exception that Mininet's command ends on with one line, and without cleaning up after other labs.
    """

    def make(*arguments: object, **options: object) -> Topo:
        try:
            return network(*arguments, **options)
        except (TopologyError, TypeError) as error:
            raise SystemExit(f"{name}: {error}") from None

    return make


topos = {"testbed": _for_command("testbed", Testbed), "leaf_spine": _for_command("leaf_spine", LeafSpine)}
