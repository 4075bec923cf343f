"""Open vSwitch's two daemons as plain processes in a folder, with one bridge whose datapath is in memory.

They need no privileges and no kernel module. Packets go nowhere, but OpenFlow, the database and TLS are the real ones.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from evaluation.bench.support.waiting import wait_until

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
DPID = 0x51
_BY_DATABASE = tuple(
    f"--{option}=db:Open_vSwitch,SSL,{column}"
    for option, column in (("private-key", "private_key"), ("certificate", "certificate"), ("ca-cert", "ca_cert"))
)


class OpenVSwitch:
    """A switch with the ports 1 and 2. ``set_ssl`` and ``connect`` do what an operator does."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._environment = os.environ | dict.fromkeys(("OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"), str(folder))
        self._socket = f"unix:{folder}/db.sock"
        database = str(folder / "conf.db")
        self.run("ovsdb-tool", "create", database, SCHEMA)
        remotes = (f"--remote=p{self._socket}", "--remote=db:Open_vSwitch,Open_vSwitch,manager_options")
        self._daemons = [self._start("ovsdb-server", database, *remotes, *_BY_DATABASE)]
        wait_until((folder / "db.sock").exists, what="the database's start")
        self.vsctl("--no-wait", "init")
        self._daemons.append(self._start("ovs-vswitchd", self._socket, "--enable-dummy=override", "--disable-system"))
        bridge = ("add-br", "br0", "--", "set", "bridge", "br0", "datapath_type=dummy", "protocols=OpenFlow13")
        ports = [
            word
            for n in (1, 2)
            for word in ("--", "add-port", "br0", f"p{n}", "--", "set", "interface", f"p{n}", "type=dummy",
                         f"ofport_request={n}")
        ]  # fmt: skip
        self.vsctl(*bridge, f"other-config:datapath-id={DPID:016x}", "fail-mode=secure", *ports)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            daemon.wait(20)

    def set_ssl(self, certificate: Path, key: Path, authority: Path) -> None:
        self.vsctl("set-ssl", str(key), str(certificate), str(authority))

    def connect(self, target: str) -> None:
        controller = ("--", "set", "controller", "br0", "max_backoff=1000", "connection_mode=out-of-band")
        self.vsctl("set-controller", "br0", target, *controller)

    def listen(self, target: str) -> None:
        """Let the database listen, such as at ``pssl:6640:127.0.0.1``."""
        self.vsctl("--no-wait", "set-manager", target)

    def is_connected(self) -> bool:
        return self.vsctl("get", "controller", "br0", "is_connected").strip() == "true"

    def vsctl(self, *arguments: str) -> str:
        return self.run("ovs-vsctl", f"--db={self._socket}", "--timeout=20", *arguments)

    def flows(self) -> str:
        return self.run("ovs-ofctl", "-O", "OpenFlow13", "dump-flows", f"unix:{self.folder}/br0.mgmt")

    def run(self, *command: str) -> str:
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
        return done.stdout

    def _start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        control = f"--unixctl={self.folder}/{program}.ctl"
        return subprocess.Popen([program, *arguments, control, "--verbose=off"], env=self._environment)
