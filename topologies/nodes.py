"""The hosts and switches of the emulated networks: links have their rates, packets their size, queues their length."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_interface
from typing import Any

from mininet.node import Host, OVSSwitch

from controller.code_points import CodePoints
from topologies import limits, openvswitch, tools
from topologies.experiments.addressing import with_prefix
from topologies.signals import held_off

DEFAULT_SEGMENTS = 8
"""A packet of segmentation offload has so many full frames at most.

Linux's own limit is 64 KB, and NIC and switch port pass such a packet whole: 52 ms of a link of 10 Mbit/s at once.
"""
_SEGMENT_BYTES = 1448
"""Bytes of TCP in a full frame."""

_HEADER_BYTES = 416
"""Linux leaves room for headers in the size of a packet, 160 to 320 bytes [known]. With less room here, a packet would
have one segment less. It is less than a segment, so that a packet has none more.
"""
_TCP_SETTINGS = "/proc/sys/net/ipv4"
# Hosts have Linux's default congestion control, whatever this machine uses, because the gain of a policy must not
# depend on that. (BBR, for example, takes a class that starves for a slow path, and still paces when the link is free.)
# A job computes between its bursts; without the second setting each burst would begin with a small window.
_TCP = (
    "echo cubic > tcp_congestion_control 2>/dev/null || echo reno > tcp_congestion_control; "
    "echo 0 > tcp_slow_start_after_idle"
)


class _QuickShell:
    """A node whose shell starts at once.

    Mininet's own shell first closes every descriptor that a process may have: 65536 and more system calls. They are not
    needed, because no descriptor of this process is inherited.
    """

    def startShell(self, mnopts: str | None = None) -> None:  # noqa: N802 (Mininet's name)
        """Start the shell as Mininet does, without closing descriptors first."""
        super().startShell("-d" if mnopts is None else mnopts)  # type: ignore[misc]  # Mininet's Node comes after


class Server(_QuickShell, Host):
    """A host whose NICs are limited to their links' rate and serve the job classes by DSCP.

    ``addresses`` are those of its interface on each rail. Interfaces have the numbers of their rails. A packet has so
    many ``segments`` at most. TCP sends nothing again before ``rto_min_seconds``; 0 stands for Linux's least time.
    """

    def config(
        self,
        *,
        link_bps: float,
        points: CodePoints,
        addresses: tuple[tuple[str, ...], ...],
        segments: int,
        rto_min_seconds: float = 0.0,
        offload: bool = True,
        **parameters: Any,
    ) -> Any:
        """Configure the host as Mininet does, then its NICs and its TCP. Raises subprocess.CalledProcessError."""
        answer = super().config(**parameters)
        interfaces = [self.intfs[number].name for number in sorted(self.intfs)]
        inside = ["mnexec", "-a", str(self.pid)]
        lines = [line for interface in interfaces for line in limits.host_nic(interface, link_bps, points)]
        tools.run([*inside, "tc", "-batch", "-"], lines=lines)
        up = links_up(dict(zip(interfaces, addresses, strict=True)), segments, rto_min_seconds)
        tools.run([*inside, "ip", "-batch", "-"], lines=up)
        settings = f"cd {_TCP_SETTINGS}; {_TCP}"
        if offload:
            # Senders hand over several packets at a time, as they do with a real NIC's offload. On these slow links the
            # kernel would cut them small, and the processors would be measured, not the network.
            settings += f"; echo {segments} > tcp_min_tso_segs"
        tools.run([*inside, "sh", "-ec", settings])
        if not offload:
            for interface in interfaces:
                # Packets that leave by a userspace switch keep the checksum that the host wrote.
                tools.run([*inside, "ethtool", "-K", interface, "tx", "off"])
        return answer


def links_up(addresses: Mapping[str, tuple[str, ...]], segments: int, rto_min_seconds: float = 0.0) -> list[str]:
    """Returns the lines for ``ip -batch`` that give interfaces their addresses and limit their segmentation offload.

    ``rto_min_seconds`` is the least retransmission timeout (RFC 6298) of TCP over them; 0 stands for Linux's.
    """
    lines = []
    for interface, own in addresses.items():
        size = segments * _SEGMENT_BYTES + _HEADER_BYTES
        lines.append(f"link set dev {interface} gso_max_segs {segments} gso_max_size {size} up")
        # No two hosts have the same address, so there is no need to wait until the kernel has made sure of that.
        lines += [
            f"addr replace {with_prefix(address)} dev {interface}{' nodad' if ':' in address else ''}"
            for address in own
        ]
        if rto_min_seconds:
            lines += [_with_rto_min(address, interface, rto_min_seconds) for address in own]
    return lines


def _with_rto_min(address: str, interface: str, seconds: float) -> str:
    """Returns the line that sets the least timeout at the route which the kernel made for an address."""
    as_made = "metric 256" if ":" in address else f"scope link src {address}"
    subnet = ip_interface(with_prefix(address)).network
    return f"route replace {subnet} dev {interface} proto kernel {as_made} rto_min {round(1000 * seconds)}ms"


def queue_packets(datapath: str, segments: int) -> int:
    """Returns how many packets a queue of a switch's port holds by default: as many bytes, whatever the packets' size.

    Hosts on a userspace datapath have no segmentation offload.
    """
    if datapath == "user":
        return limits.LONE_QUEUE_PACKETS
    return limits.QUEUE_PACKETS * DEFAULT_SEGMENTS // segments


class LimitedSwitch(_QuickShell, OVSSwitch):
    """A switch whose ports are limited to their links' rates; a controller replaces the limits by its queues."""

    def __init__(self, name: str, *, rates_bps: Mapping[int, float], packets: int, **parameters: Any) -> None:
        # Otherwise Mininet starts all switches with one command, and it is not known when a port exists.
        parameters["batch"] = False
        super().__init__(name, failMode="secure", protocols="OpenFlow13", **parameters)
        self.rates_bps = rates_bps
        self._packets = packets

    def start(self, controllers: list[Any]) -> None:
        """Make the bridge, then limit its ports."""
        openvswitch.wait_for_clock()
        super().start(controllers)
        ports = {self.intfs[number].name: rate for number, rate in self.rates_bps.items()}
        limits.bound_queues(ports, self._packets)
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
