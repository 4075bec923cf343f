"""Reads the byte counters of the ports of RDMA devices (InfiniBand, RoCE, EFA) from sysfs.

``counters/port_xmit_data`` and ``port_rcv_data`` are octets divided by 4 (the kernel's Documentation/ABI/stable/
sysfs-class-infiniband). On RoCE of mlx5 they are the bytes of RDMA alone, which the network interface does not count.
Devices without them may have ``hw_counters/tx_bytes`` and ``rx_bytes``, in bytes, as Amazon's EFA has.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from host_reporter.nic.netdev import Count
from host_reporter.unseen.counts import Port

ROOT = Path("/sys/class/infiniband")
MAX_PORTS = 64
"""Read at most this many ports."""
_INFINIBAND = "InfiniBand"
_FILES = (("counters/port_xmit_data", "counters/port_rcv_data", 4), ("hw_counters/tx_bytes", "hw_counters/rx_bytes", 1))
"""Files of the bytes sent and received, and how many bytes a unit of theirs has."""


def read(root: Path = ROOT) -> list[Port]:
    """Returns the ports that count bytes, by name."""
    ports: list[Port] = []
    for folder in _folders(root):
        port = _port(folder)
        if port is not None:
            ports.append(port)
        if len(ports) == MAX_PORTS:
            break
    return ports


def _folders(root: Path) -> Iterator[Path]:
    for device in _entries(root):
        yield from _entries(device / "ports")


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _port(folder: Path) -> Port | None:
    """Returns the port of a folder DEVICE/ports/NUMBER; None: it counts no bytes."""
    device = folder.parent.parent
    for sent_file, received_file, unit in _FILES:
        sent, received = _number(folder / sent_file), _number(folder / received_file)
        if sent is not None and received is not None:
            return Port(
                name=f"{device.name}:{folder.name}",
                bytes=Count(sent * unit, received * unit),
                netdevs=tuple(entry.name for entry in _entries(device / "device" / "net")),
                has_their_bytes=_text(folder / "link_layer") == _INFINIBAND,
            )
    return None


def _number(file: Path) -> int | None:
    text = _text(file)
    return int(text) if text is not None and text.isdecimal() else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None
