"""Buffer space for what a switch on the userspace datapath sends.

ovs-vswitchd sends for all of its ports through one socket, and packets that wait in a port's queues count as that
socket's. With the kernel's default of 208 KB all queues together hold some ninety packets. The rest are lost, and no
counter shows it: 13 hosts on links of 10 Mbit/s lost 15 % of all packets, and none with a larger buffer.
"""

from __future__ import annotations

from pathlib import Path

from topologies.errors import LabError

SETTING = Path("/proc/sys/net/core/wmem_default")
SEND_BYTES = 64 * 2**20
"""Set this send buffer. 13 ports with 8 queues of 64 packets need 15 MB."""


def send_bytes() -> int:
    """Return the machine's send buffer of a new socket, in bytes. Raises OSError."""
    return int(SETTING.read_text())


def set_send_bytes(value: int) -> None:
    """Set the send buffer of sockets that are made from now on. Raises LabError."""
    try:
        SETTING.write_text(f"{value}\n")
    except OSError as error:
        raise LabError(
            f"{SETTING} cannot be set ({error.strerror}); without it the userspace datapath loses packets: use "
            "--datapath uml"
        ) from error
