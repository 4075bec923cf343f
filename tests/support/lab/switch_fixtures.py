"""A real bridge with three hosts, and a dataplane that is driven by commands; for root with Open vSwitch running."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.waiting import wait_until
from tests.support.ip_commands import ip
from tests.support.paths import ROOT

BRIDGE = "tydp"
DPID = 0x7E57
HOSTS = 3
LINK_BPS = 20e6
GATE_SECONDS = 2
ANSWER_SECONDS = 4.0
"""What a switch may take: twice the product's default, for a machine that does other work too."""
FLOWS = {"a": [["h1", "h2", 5000], ["h2", "h1", 5000]], "b": [["h1", "h3", 5001]]}
"""Two jobs, as ``Driver`` takes them."""
_FRESH_SECONDS = 10.5
_SPACES = Path("/run/netns")


def sh(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr or done.stdout}"
    return done.stdout


class ClassCount(NamedTuple):
    """What ``tc`` tells of one queue: packets sent, dropped and waiting."""

    sent: int
    dropped: int
    waiting: int


class Bridge:
    """One kernel-datapath switch, hosts ``ty1``.. in namespaces of their own with 10.0.0.1.. .

    It is made and removed with few commands: in a box each takes a quarter of a second.
    """

    def __init__(self, controller_port: int, datapath: str = "system", name: str = BRIDGE, dpid: int = DPID) -> None:
        # Open vSwitch counts the processors as 0 while the machine is up for less than 10 s, and then drops all.
        wait_until(lambda: float(Path("/proc/uptime").read_text().split()[0]) > _FRESH_SECONDS)
        self.name, self.dpid = name, dpid
        self.close()
        hosts = range(1, HOSTS + 1)
        self._make_hosts(*hosts)
        sh("ovs-vsctl", "add-br", name, "--", "set", "bridge", name, f"datapath_type={datapath}",
           f"other-config:datapath-id={dpid:016x}", "protocols=OpenFlow13", "fail-mode=secure",
           *(word for n in hosts for word in self._adding(n)),
           "--", "set-controller", name, f"tcp:127.0.0.1:{controller_port}", "--", "set", "controller", name,
           "max_backoff=1000", "inactivity_probe=5000", "connection_mode=out-of-band")  # fmt: skip

    def port(self, n: int) -> str:
        return f"{self.name}-{n}"

    def _space(self, n: int) -> str:
        return f"{self.name}h{n}"

    def _make_hosts(self, *numbers: int) -> None:
        lines = []
        for n in numbers:
            space, port = self._space(n), self.port(n)
            lines += [f"netns add {space}", f"link add eth0 netns {space} type veth peer name {port}"]
            lines += [f"link set {port} up"]
        ip(lines=lines)
        for n in numbers:
            inside = [f"addr add 10.0.0.{n}/24 dev eth0", "link set lo up", "link set eth0 up"]
            ip("-n", self._space(n), lines=inside)

    def _adding(self, n: int) -> list[str]:
        port = self.port(n)
        return ["--", "add-port", self.name, port, "--", "set", "interface", port, f"ofport_request={n}"]

    def add_host(self, n: int) -> None:
        self._make_hosts(n)
        sh("ovs-vsctl", *self._adding(n)[1:])

    def remove_host(self, n: int) -> None:
        sh("ovs-vsctl", "--if-exists", "del-port", self.name, self.port(n))
        self._remove_hosts(n)

    def _remove_hosts(self, *numbers: int) -> None:
        """Remove those of these hosts that are there."""
        links = {name for _, name in socket.if_nameindex()}
        lines = [f"link del {self.port(n)}" for n in numbers if self.port(n) in links]
        lines += [f"netns del {self._space(n)}" for n in numbers if (_SPACES / self._space(n)).exists()]
        if lines:
            ip(lines=lines)

    def close(self) -> None:
        sh("ovs-vsctl", "--if-exists", "del-br", self.name)
        self._remove_hosts(*range(1, HOSTS + 2))
        columns = "--columns=_uuid,external_ids"
        tables = sh("ovs-vsctl", "--format=json", columns, "list", "QoS", "--", columns, "list", "Queue").splitlines()
        mine = f"{self.dpid:016x}/"
        ours = [
            (table, uuid)
            for table, found in zip(("QoS", "Queue"), tables, strict=True)
            for (_, uuid), (_, pairs) in json.loads(found)["data"]
            if dict(pairs).get("trainyard", "").startswith(mine)
        ]
        if ours:
            # A command that the controller gave before its end may remove them meanwhile.
            words = [word for row in ours for word in ("--", "--if-exists", "destroy", *row)]
            sh("ovs-vsctl", *words[1:])

    def inside(self, n: int, *command: str) -> str:
        return sh("ip", "netns", "exec", self._space(n), *command)

    def pings(self, src: int = 1, dst: int = 2) -> bool:
        with suppress(AssertionError):
            self.inside(src, "ping", "-c", "1", "-W", "1", f"10.0.0.{dst}")
            return True
        return False

    def flows(self, *, ours: bool = True) -> dict[str, str]:
        """Rules by their match and actions: the cookie. Without the gate's, whose owner is another."""
        found = {}
        for line in sh("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", self.name).splitlines():
            rule = re.sub(r"(duration|n_packets|n_bytes)=[^,]*, ", "", line)
            if (m := re.match(r"\s*cookie=0x([0-9a-f]+), (table=.*)", rule)) and (m[1].startswith("7472") or not ours):
                found[m[2]] = m[1]
        return found

    def rules(self, *command: str) -> None:
        """Change its rules behind the controller's back: ``ovs-ofctl`` with a command and its arguments."""
        verb, *arguments = command
        sh("ovs-ofctl", "-O", "OpenFlow13", verb, self.name, *arguments)

    def gate_is_open(self) -> bool:
        return any(cookie.startswith("7473") for cookie in self.flows(ours=False).values())

    def ages(self) -> dict[str, float]:
        """Seconds that each job flow's rule has been there, by its TCP port."""
        text = sh("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", self.name)
        found = re.findall(r"duration=([\d.]+)s, table=1,.*tp_dst=(\d+)", text)
        return {port: float(age) for age, port in found}

    def queue_bytes(self, port: int) -> dict[int, int]:
        """Bytes that a port has sent from each queue, by the switch's own count."""
        text = sh("ovs-ofctl", "-O", "OpenFlow13", "queue-stats", self.name, str(port))
        found = {int(queue): int(count) for queue, count in re.findall(r"queue (\d+): bytes=(\d+)", text)}
        assert found, text
        return found

    def qos(self, n: int) -> str:
        """Returns the id of a port's QoS row, or ``[]``."""
        return sh("ovs-vsctl", "get", "port", self.port(n), "qos").strip()

    def class_count(self, n: int, queue: int) -> ClassCount:
        """Returns what the kernel has counted at a queue of a port."""
        text = sh("tc", "-s", "class", "show", "dev", self.port(n))
        found = re.search(
            rf"class htb 1:{queue + 1:x} .*\n Sent \d+ bytes (\d+) pkt \(dropped (\d+),.*\n backlog \S+ (\d+)p", text
        )
        assert found is not None, text
        return ClassCount(*map(int, found.groups()))

    def send_tcp(self, src: int, dst: int, port: int, count: int) -> None:
        """Send ``count`` bytes from a host to another's port, and wait until all have come."""
        command = ["ip", "netns", "exec", self._space(dst), sys.executable, "-S", "-c", _SINK, str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                server.stdout.readline()
                self.inside(src, sys.executable, "-S", "-c", _SOURCE, f"10.0.0.{dst}", str(port), str(count))
                assert int(server.communicate(timeout=30)[0]) == count
            finally:
                server.kill()


_SINK = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])))
print("listening", flush=True)
connection, _ = server.accept()
total = 0
while data := connection.recv(65536):
    total += len(data)
print(total)
"""
_SOURCE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
"""


class Driver:
    """The dataplane in a process of its own."""

    def __init__(self, openflow_port: int, folder: Path, **settings: Any) -> None:
        self.openflow_port = openflow_port
        self.folder = folder
        self.settings = {
            "gate_seconds": GATE_SECONDS,
            "answer_seconds": ANSWER_SECONDS,
            "retry_seconds": 0.5,
        } | settings
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        port = free_port()
        links = [(DPID, n) for n in range(1, HOSTS + 2)]
        orders = {"port": port, "settings": self.settings, "link_bps": LINK_BPS, "links": links}
        command = [
            *(sys.executable, "-W", "ignore", str(Path(sys.executable).parent / "ryu-manager")),
            *("--ofp-listen-host", "127.0.0.1", "--ofp-tcp-listen-port", str(self.openflow_port)),
            str(ROOT / "tests" / "support" / "lab" / "dataplane_driver.py"),
        ]
        env = os.environ | {"DRIVER": json.dumps(orders), "PYTHONPATH": str(ROOT)}
        with (self.folder / "driver.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=env, stdout=log, stderr=log, cwd=self.folder)

        def connect() -> socket.socket | None:
            with suppress(OSError):
                return socket.create_connection(("127.0.0.1", port), timeout=30)
            return None

        self._socket = wait_until(connect, 60, what="the driver's start")
        self._stream = self._socket.makefile("rw")

    @property
    def runs(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        assert self._process is not None
        self._stream.close()
        self._socket.close()
        self._process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._process.kill()
        self._process.wait()
        self._process = None

    def do(self, command: str, **arguments: Any) -> Any:
        self._stream.write(json.dumps({"do": command, **arguments}) + "\n")
        self._stream.flush()
        answer = json.loads(self._stream.readline())
        assert not (isinstance(answer, dict) and "failed" in answer), answer
        return answer

    def status(self, dpid: int = DPID) -> dict[str, Any]:
        return next((status for status in self.do("status") if status["dpid"] == dpid), {"ready": False})

    def wait_ready(self) -> None:
        wait_until(lambda: self.status()["ready"], 20, what="the switch's readiness")
