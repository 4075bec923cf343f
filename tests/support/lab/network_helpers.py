"""What several tests of the lab share."""

from __future__ import annotations

import re
import subprocess

from topologies.emulation import Emulation

LINK_BPS = 25e6
CLASSES = 7
PERIOD_SECONDS = 1.0


def flows(bridge: str) -> list[str]:
    """The rules of a bridge without the gate, counters, ages and the plan's number: what they match and do."""
    text = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", "--no-stats", "dump-flows", bridge],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rules = [line.strip() for line in text.splitlines() if "actions" in line and "hard_timeout" not in line]
    return sorted(re.sub(r"cookie=\S+ ", "", rule) for rule in rules)


def saved_marks(emulation: Emulation, host: str, address: str) -> str:
    """The rules for packets of an address's family, whichever of the two kinds of iptables the agent uses here."""
    tool = "ip6tables" if ":" in address else "iptables"
    command = f"{tool}-legacy-save -t mangle; {tool}-nft-save -t mangle; :"
    return emulation.run(host, ["sh", "-c", command])


def gate_is_open(bridge: str) -> bool:
    """Whether a bridge sends traffic through its classes now."""
    text = subprocess.run(
        ["ovs-ofctl", "-O", "OpenFlow13", "dump-flows", bridge, "table=0"], check=True, capture_output=True, text=True
    ).stdout
    return "hard_timeout" in text
