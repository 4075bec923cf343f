"""Records sessions of a real Open vSwitch with the dataplane: ``tests/data/openflow_sessions.json``, for the fuzz.

Runs where the lab's tests run, from the root of the tree:

    .venv/bin/python -m topologies.box.datapath -- .venv/bin/python -m tests.support.lab.record_openflow FILE

The file holds, for each connection, what was sent in its order: ``["asks", hex]`` for a request of the controller that
has an answer, ``["tells", hex]`` for a message of the switch, one message each. Of exchanges that look alike only the
first few are kept.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.lab.switch_fixtures import BRIDGE, Bridge, Driver, sh

KEPT = 6
"""Messages of the same type and length that are kept of a session."""
RULE_OF_OTHERS = "table=0,priority=9,icmp"
RULE_LIKE_OURS = (
    "cookie=0x7472000000000000,table=1,priority=3,tcp6,reg0=7,tcp_dst=99/0xff,ipv6_src=fd00::/8,"
    "actions=push_vlan:0x8100,load:1->NXM_NX_REG1[],set_field:4097->vlan_vid,normal"
)
"""A rule with our cookie that no version of ours makes, with extensions of Open vSwitch."""
_ASKING = {2, 4, 5, 18, 20}
_MULTIPART = {18, 19}


class Recorder:
    """Stands between switch and controller; ``sessions`` has a list of messages for each connection."""

    def __init__(self, controller_port: int) -> None:
        self.sessions: list[list[tuple[str, bytes]]] = []
        self._controller_port = controller_port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            switch, _ = self._server.accept()
            try:
                controller = socket.create_connection(("127.0.0.1", self._controller_port), 5)
            except OSError:  # it is not there yet; the switch tries again
                switch.close()
                continue
            controller.settimeout(None)
            session: list[tuple[str, bytes]] = []
            self.sessions.append(session)
            for source, target, kind in ((switch, controller, "tells"), (controller, switch, "asks")):
                threading.Thread(target=self._pump, args=(source, target, kind, session), daemon=True).start()

    @staticmethod
    def _pump(source: socket.socket, target: socket.socket, kind: str, session: list[tuple[str, bytes]]) -> None:
        data = b""
        try:
            while chunk := source.recv(65536):
                data += chunk
                while len(data) >= 8 and len(data) >= (length := struct.unpack_from("!H", data, 2)[0]):
                    session.append((kind, data[:length]))
                    target.sendall(data[:length])
                    data = data[length:]
        except OSError:  # one side has ended
            pass
        for end in (source, target):
            end.close()


def digest(session: list[tuple[str, bytes]]) -> list[tuple[str, str]]:
    """A session without the requests that have no answer, and without what looks like something before."""
    seen: Counter[tuple[int, int, bytes]] = Counter()
    answered = {message[4:8] for kind, message in session if kind == "tells"}
    kept: list[tuple[str, str]] = []
    dropped: set[bytes] = set()
    for kind, message in session:
        xid = message[4:8]
        if xid in dropped or (kind == "asks" and (message[1] not in _ASKING or xid not in answered)):
            continue
        if kind == "asks" or message[1] in {1, 2, 10, 11, 12}:
            look = (message[1], len(message), message[8:10] if message[1] in _MULTIPART else b"")
            seen[look] += 1
            if seen[look] > KEPT:
                dropped.add(xid)
                continue
        kept.append((kind, message.hex()))
    return kept


def add_rule(rule: str) -> None:
    """Add a rule behind the controller's back."""
    sh("ovs-ofctl", "-O", "OpenFlow13", "add-flow", BRIDGE, rule)


def record(folder: Path) -> list[list[tuple[str, bytes]]]:
    """Have a switch and the dataplane say to each other all that they ever do."""
    controller_port = free_port()
    recorder = Recorder(controller_port)
    driver = Driver(controller_port, folder)
    bridge = Bridge(recorder.port)
    try:
        driver.wait_ready()
        flows = {f"job{n}": [["h1", "h2", 7000 + n], ["h2", "h3", 8000 + n]] for n in range(20)}
        for bundles in (True, False):
            driver.do("bundles", on=bundles)
            driver.do("apply", flows=flows, classes={job: n % 7 for n, job in enumerate(flows)})
            driver.do("apply", flows=flows, classes={}, bad_port=0xFFFFFF42)
            driver.do("apply", flows={}, classes={})
        driver.wait_ready()
        driver.do("apply", flows=flows, classes={})
        add_rule(f"cookie=0xbeef,send_flow_rem,{RULE_OF_OTHERS},actions=CONTROLLER:128,goto_table:1")
        add_rule(RULE_LIKE_OURS)
        bridge.pings()
        sh("ovs-ofctl", "-O", "OpenFlow13", "--strict", "del-flows", BRIDGE, RULE_OF_OTHERS)
        bridge.add_host(4)
        sh("ip", "link", "set", bridge.port(4), "down")
        time.sleep(2)
        bridge.remove_host(4)
        sh("ovs-vsctl", "set", "controller", BRIDGE, "inactivity_probe=1000")
        driver.stop()
        driver.start()  # which reads the rules that are there
        wait_until(lambda: len(recorder.sessions) > 1, 20, what="the second connection")
        driver.wait_ready()
        time.sleep(4)
    finally:
        bridge.close()
        driver.stop()
    return recorder.sessions


def main(path: Path) -> None:
    """Record, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        sessions = record(Path(folder))
    document = {
        "switch": sh("ovs-vswitchd", "--version").splitlines()[0],
        "sessions": [digest(session) for session in sessions if len(session) > 4],
    }
    lines = ",\n".join(json.dumps(session).replace("], [", "],\n[") for session in document["sessions"])
    path.write_text(f'{{"switch": {json.dumps(document["switch"])},\n"sessions": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main(Path(sys.argv[1]))
