"""The table of packets through the packet filter of a host, as an agent fills it: each case's DSCP on the cable.

The switches' side is in ``tests/unit/controller/rules/test_packets.py``.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.packets import world
from tests.support.packets.expected import all_cases
from tests.support.paths import ROOT

SENT = [case for case in all_cases() if case.pair.src.port in {world.ENDS[host].port for host in world.HOSTS}]


@pytest.mark.parametrize("whose", ["classes", "own"])
def test_each_packet_leaves_its_host_with_the_dscp_of_the_table(whose: str) -> None:
    variants = [
        variant
        for variant in ("iptables-legacy", "iptables-nft")
        if apart(variant, "-t", "mangle", "-N", "TRY") is not None
    ]
    assert variants, "neither variant of iptables works in this kernel"
    for variant in variants:
        text = apart(sys.executable, "-m", "tests.support.packets.host_side", variant, whose)
        assert text is not None, variant
        arrived = json.loads(text)
        assert {case.name for case in SENT} == set(arrived), "some packets have not come"
        expected = {case.name: case.leaving(own=whose == "own") for case in SENT}
        wrong = {name: tos for name, tos in arrived.items() if tos != expected[name]}
        assert not wrong, f"{variant}: the TOS bytes that came: {wrong}"


def apart(*command: str) -> str | None:
    """Returns what a command prints in a network namespace of its own; None where it fails."""
    done = subprocess.run(
        ["unshare", "--net", *command], cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )
    sys.stderr.write(done.stderr)
    return done.stdout if done.returncode == 0 else None
