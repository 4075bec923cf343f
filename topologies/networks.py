"""Networks to emulate: ``testbed`` (servers on one switch) and ``leaf_spine``. Every link is limited at both ends.

The lab uses them, and so can Mininet's own command, without a controller or with any:

    sudo mn --custom topologies/networks.py --topo testbed,13 --controller remote
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
from typing import Any

from mininet.node import Host, OVSSwitch
from mininet.topo import Topo

# The import of Mininet has made its own logger class, with a level of its own, the class of all later loggers.
logging.setLoggerClass(logging.Logger)

_frame = inspect.currentframe()
if _frame is not None and __name__ != "topologies.networks":
    # Mininet executes this file without importing it: the tree around it is found by the file's name.
    sys.path.append(str(Path(_frame.f_code.co_filename).resolve().parent.parent))

from topologies import limits, management, openvswitch, tools  # noqa: E402 (the path above has to come first)
from topologies.signals import held_off  # noqa: E402 (as above)

DEFAULT_LINK_BPS = 100e6
DEFAULT_QUEUES = 8
TSO_SEGMENTS = 8
GSO_BYTES = 12_000
"""A packet of segmentation offload has ``TSO_SEGMENTS`` segments and ``GSO_BYTES`` bytes at most.

Linux's own limit is 64 KB, and NIC and switch port pass such a packet whole: 52 ms of a link of 10 Mbit/s at once.
"""
_TCP_SETTINGS = "/proc/sys/net/ipv4"
# Hosts have Linux's default congestion control, whatever this machine uses, because the gain of a policy must not
# depend
# on that. (BBR, for example, takes a class that starves for a slow path, and still paces when the link is free.) A job
# computes between its bursts; without the second setting each burst would begin with a small window.
_TCP = (
    "echo cubic > tcp_congestion_control 2>/dev/null || echo reno > tcp_congestion_control; "
    "echo 0 > tcp_slow_start_after_idle"
)
MOST_HOSTS = management.LARGEST
LEAST_BPS, MOST_BPS = 1e5, 1e11


class TopologyError(ValueError):
    """There is no such network. The message says what would be right."""


class _QuickShell:
    """A node whose shell starts at once.

    Mininet's own shell first closes every descriptor that a process may have: 65536 and more system calls. They are not
    needed, because no descriptor of this process is inherited.
    """

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Start the shell as Mininet does, without closing descriptors first."""
        super().startShell("-d" if mnopts is None else mnopts)  # type: ignore[misc]  # Mininet's Node comes after


class Server(_QuickShell, Host):
    """A host whose NIC is limited to its link's rate and serves the job classes by DSCP."""

    def config(self, *, link_bps: float, classes: int, offload: bool = True, **parameters: Any) -> Any:
        """Configure the host as Mininet does, then its NIC and its TCP. Raises subprocess.CalledProcessError."""
        answer = super().config(**parameters)
        interface = self.defaultIntf().name
        inside = ["mnexec", "-a", str(self.pid)]
        lines = limits.host_nic(interface, link_bps, classes)
        tools.run([*inside, "tc", "-batch", "-"], lines=lines)
        settings = f"ip link set dev {interface} gso_max_segs {TSO_SEGMENTS} gso_max_size {GSO_BYTES}; "
        settings += f"cd {_TCP_SETTINGS}; {_TCP}"
        if offload:
            # Senders hand over several packets at a time, as they do with a real NIC's offload. On these slow links the
            # kernel would cut them small, and the processors would be measured, not the network.
            settings += f"; echo {TSO_SEGMENTS} > tcp_min_tso_segs"
        tools.run([*inside, "sh", "-ec", settings])
        if not offload:
            # Packets that leave by a userspace switch keep the checksum that the host wrote.
            tools.run([*inside, "ethtool", "-K", interface, "tx", "off"])
        return answer


class LimitedSwitch(_QuickShell, OVSSwitch):
    """A switch whose ports are limited to their links' rates; a controller replaces the limits by its queues."""

    def __init__(self, name: str, *, rates_bps: Mapping[int, float], **parameters: Any) -> None:
        # Otherwise Mininet starts all switches with one command, and it is not known when a port exists.
        parameters["batch"] = False
        super().__init__(name, failMode="secure", protocols="OpenFlow13", **parameters)
        self.rates_bps = rates_bps

    def start(self, controllers: list[Any]) -> None:
        """Make the bridge, then limit its ports."""
        openvswitch.wait_for_clock()
        super().start(controllers)
        ports = {self.intfs[number].name: rate for number, rate in self.rates_bps.items()}
        limits.bound_queues(ports, limits.LONE_QUEUE_PACKETS if self.datapath == "user" else limits.QUEUE_PACKETS)
        limits.limit_ports(ports)

    def stop(self, deleteIntfs: bool = True) -> None:  # noqa: N803 (Mininet's name)
        """Delete the bridge and the queues that it leaves behind. No signal ends the program between the two."""
        with held_off():
            super().stop(deleteIntfs)
            limits.collect_rows()

    @classmethod
    def batchShutdown(cls, _switches: Any, _run: Any = None) -> list[Any]:  # noqa: N802 (Mininet's name)
        """Stop no switch here, because each needs ``stop``."""
        return []


class Testbed(Topo):
    """``servers`` hosts h1..hN on one switch s1. Server i is on port i. Rates are in bit/s."""

    def build(
        self,
        servers: int = 13,
        link_bps: float = DEFAULT_LINK_BPS,
        queues: int = DEFAULT_QUEUES,
        datapath: str = "kernel",
    ) -> None:
        """Add the hosts, switches and links. Mininet calls this. Raises TopologyError."""
        servers, classes = _count("servers", servers, 1, MOST_HOSTS), _count("queues", queues, 2, 8) - 1
        rate = _rate("link_bps", link_bps)
        rates = dict.fromkeys(range(1, servers + 1), rate)
        self.addSwitch("s1", cls=LimitedSwitch, dpid=f"{1:016x}", datapath=datapath, rates_bps=rates)
        for i in range(1, servers + 1):
            _add_server(self, i, link_bps=rate, classes=classes, datapath=datapath)
            self.addLink(f"h{i}", "s1", port1=0, port2=i)


class LeafSpine(Topo):
    """``leaves`` switches with ``servers_per_leaf`` hosts each, every one linked to all ``spines`` switches.

    Leaf l is switch l, spine s is switch leaves + s. A leaf's servers are on its ports 1..n, spine s on its port
    n + s; leaf l is on every spine's port l. With ``uplink_bps`` 0 the uplinks have the rate of the servers' links.
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
    ) -> None:
        """Add the hosts, switches and links. Mininet calls this. Raises TopologyError."""
        leaves, spines = _count("leaves", leaves, 1, MOST_HOSTS), _count("spines", spines, 1, MOST_HOSTS)
        each, classes = _count("servers_per_leaf", servers_per_leaf, 1, MOST_HOSTS), _count("queues", queues, 2, 8) - 1
        _count("servers, of all leaves together", leaves * each, 1, MOST_HOSTS)
        down = _rate("link_bps", link_bps)
        up = _rate("uplink_bps", uplink_bps, for_zero=down)
        for leaf in range(1, leaves + 1):
            rates = {n: down if n <= each else up for n in range(1, each + spines + 1)}
            self.addSwitch(f"s{leaf}", cls=LimitedSwitch, dpid=f"{leaf:016x}", datapath=datapath, rates_bps=rates)
        for spine in range(leaves + 1, leaves + spines + 1):
            rates = dict.fromkeys(range(1, leaves + 1), up)
            self.addSwitch(f"s{spine}", cls=LimitedSwitch, dpid=f"{spine:016x}", datapath=datapath, rates_bps=rates)
        for leaf in range(1, leaves + 1):
            for n in range(1, each + 1):
                i = (leaf - 1) * each + n
                _add_server(self, i, link_bps=down, classes=classes, datapath=datapath)
                self.addLink(f"h{i}", f"s{leaf}", port1=0, port2=n)
            for spine in range(1, spines + 1):
                self.addLink(f"s{leaf}", f"s{leaves + spine}", port1=each + spine, port2=leaf)


def _add_server(topo: Topo, number: int, *, link_bps: float, classes: int, datapath: str) -> None:
    topo.addHost(
        f"h{number}",
        cls=Server,
        ip=f"{address(number)}/24",
        mac=f"02:00:00:00:00:{number:02x}",
        link_bps=link_bps,
        classes=classes,
        offload=datapath != "user",
    )


def address(number: int) -> str:
    """Return the IPv4 address of host h``number`` on the measured network."""
    return f"10.0.0.{number}"


def _count(name: str, given: object, least: int, most: int) -> int:
    """Return a count, which Mininet's command gives as text. Raises TopologyError."""
    try:
        count = int(str(given))
    except ValueError:
        count = least - 1
    if not least <= count <= most:
        raise TopologyError(f"{name}: {given} is not a whole number from {least} to {most}")
    return count


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
