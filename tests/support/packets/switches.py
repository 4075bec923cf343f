"""A real Open vSwitch whose datapath is in memory, with a bridge for each combination, and rules from a controller."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.openflow.openvswitch_process import OpenVSwitch
from evaluation.bench.support.waiting import wait_until
from tests.support.packets import unixctl
from tests.support.packets.capture import Capture
from tests.support.packets.world import DPIDS, ENDS
from tests.support.paths import ROOT

MTU = 9000
_QUEUE = re.compile(r"set\(skb_priority\((0x[0-9a-f]+|\d+)\)\)")
_TOS = re.compile(r"set\(ipv[46]\((?:tos|tclass)=(0x[0-9a-f]+|\d+)(?:/(0x[0-9a-f]+|\d+))?\)\)")
_DATAPATH = "dummy@ovs-dummy"


class Verdict(NamedTuple):
    """What a switch does with a packet: its queue, and its TOS byte behind it (None: it has none)."""

    queue: int
    tos: int | None


class Switches(OpenVSwitch):
    """One bridge a combination, named like it, each with a port for each end of the world."""

    def add_bridges(self, controller: str) -> None:
        """Make the bridges, and have them connect to a controller."""
        # A frame with two tags is known by what is behind both. Frames for bridges go on, so that their queue shows.
        self.vsctl("set", "open_vswitch", ".", "other_config:vlan-limit=2")
        self._captures: dict[tuple[str, int], Capture] = {}
        for name, dpid in DPIDS.items():
            words = ["add-br", name, "--", "set", "bridge", name, "datapath_type=dummy", "protocols=OpenFlow13",
                     f"other-config:datapath-id={dpid:016x}", "other-config:forward-bpdu=true",
                     "fail-mode=secure"]  # fmt: skip
            for end in ENDS.values():
                port = f"{name}{end.port}"
                capture = self._captures[name, end.port] = Capture(self.folder / f"{port}.pcap")
                words += ["--", "add-port", name, port, "--", "set", "interface", port, "type=dummy",
                          f"ofport_request={end.port}", f"mtu_request={MTU}",
                          f"options:tx_pcap={capture.path}"]  # fmt: skip
            self.vsctl(*words)
            self.vsctl("set-controller", name, controller, "--", "set", "controller", name, "max_backoff=1000",
                       "connection_mode=out-of-band")  # fmt: skip

    def trace(self, combination: str, frame: bytes, port: int, tos: int | None) -> Verdict:
        """Returns what a switch would do with a frame that comes in by a port; ``tos`` is what the frame has."""
        text = self._ask("ofproto/trace", combination, f"in_port={port}", frame.hex())
        found = re.search(r"^Datapath actions: (.*)$", text, re.MULTILINE)
        assert found is not None and found[1] != "drop", text
        return verdict(found[1], tos)

    def send(
        self, combination: str, frame: bytes, ports: tuple[int, int], tos: int | None
    ) -> tuple[Verdict, list[bytes]]:
        """Let a frame come in twice by the first of two ports. Returns what the datapath did with the second one.

        With it come the frames that left by the second port. The first frame goes through the tables, the second one by
        the datapath's own flow, which counts it.
        """
        capture = self._captures[combination, ports[1]]
        capture.frames()  # what was sent before
        self._ask("revalidator/purge")
        for count in (0, 1):
            self._ask("netdev-dummy/receive", f"{combination}{ports[0]}", frame.hex())
            # A packet that goes through the datapath again, as behind some actions, has a flow for each time.
            actions = wait_until(lambda count=count: self._flows(count), what=f"packet {count}")
        return verdict(",".join(actions), tos), capture.frames()

    def _flows(self, count: int) -> list[str]:
        """Returns the actions of the datapath's flows that have counted so many packets."""
        flows = self._ask("dpctl/dump-flows", _DATAPATH)
        return re.findall(rf"packets:{count}, .* actions:(.*)$", flows, re.MULTILINE)

    def _ask(self, method: str, *arguments: str) -> str:
        return unixctl.ask(self.folder / "ovs-vswitchd.ctl", method, *arguments)


def verdict(actions: str, tos: int | None) -> Verdict:
    """Returns what the datapath's actions do with a packet that has this TOS byte."""
    queue, written = _QUEUE.search(actions), _TOS.search(actions)
    if written is not None:
        assert tos is not None, f"a TOS byte for a packet that is not IP: {actions}"
        mask = int(written[2], 0) if written[2] else 0xFF
        tos = int(written[1], 0) & mask | tos & ~mask
    return Verdict(int(queue[1], 0) if queue else 0, tos)


@contextmanager
def switches(folder: Path) -> Iterator[Switches]:
    """Start the switches and the controller, and wait for the rules. Raises AssertionError if any is refused."""
    port, rules = free_port(), folder / "rules.json"
    with Switches(folder / "ovs") as made, (folder / "controller.log").open("wb") as log:
        made.add_bridges(f"tcp:127.0.0.1:{port}")
        command = [
            *(sys.executable, "-W", "ignore", str(Path(sys.executable).parent / "ryu-manager")),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(port)),
            str(ROOT / "tests" / "support" / "packets" / "rules_app.py"),
        ]
        environment = os.environ | {"RULES_FILE": str(rules), "PYTHONPATH": str(ROOT)}
        app = subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd=folder)
        try:
            wait_until(lambda: rules.exists() and rules.read_text(), 60, what="the rules")
            assert json.loads(rules.read_text()) == []
            yield made
        finally:
            app.kill()
            app.wait()
