"""Room for what a switch on the userspace datapath sends.

ovs-vswitchd sends for all of its ports by one socket, and what waits in any port's queues counts as that socket's. With
the kernel's usual 208 KB all but some ninety packets in all queues together are lost, and no counter tells: 13 hosts on
links of 10 Mbit/s lost 15 % of all packets, and none once there was room.
"""

from __future__ import annotations

from pathlib import Path

from topologies.errors import LabError

SETTING = Path("/proc/sys/net/core/wmem_default")
SEND_BYTES = 64 * 2**20
"""13 ports with 8 queues of 64 packets are 15 MB."""


def send_bytes() -> int:
    """What a new socket may have on its way, as the machine is set. Raises OSError."""
    return int(SETTING.read_text())


def set_send_bytes(value: int) -> None:
    """Set it, for sockets made from now on. Raises LabError."""
    try:
        SETTING.write_text(f"{value}\n")
    except OSError as error:
        raise LabError(
            f"{SETTING} cannot be set ({error.strerror}); without it the userspace datapath loses packets: use "
            "--datapath uml"
        ) from error
