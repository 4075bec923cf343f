"""A real ``ovsdb-server`` as a plain process, with the database of one bridge."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from evaluation.bench.support.openflow.openvswitch_process import SCHEMA
from evaluation.bench.support.waiting import wait_until


class OvsdbServer:
    """The database of one server that has one bridge with the ports 1 and 2, as its switch would have filled it."""

    def __init__(self, folder: Path, dpid: int) -> None:
        folder.mkdir()
        self.address = f"unix:{folder}/db.sock"
        database = str(folder / "conf.db")
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        command = ["ovsdb-server", database, f"--remote=p{self.address}", "--verbose=off", f"--unixctl={folder}/ctl"]
        self._process = subprocess.Popen(command)
        wait_until(lambda: (folder / "db.sock").exists() or self._process.poll() is not None, what="the server's start")
        assert self._process.poll() is None, "ovsdb-server has ended"
        self.vsctl("init")
        # There is no switch that would tell what it has carried out: it has carried out everything.
        self.vsctl("set", "open_vswitch", ".", "cur_cfg=1000000")
        self.vsctl("add-br", "br0", "--", "set", "bridge", "br0", f'datapath_id="{dpid:016x}"')
        for port in (1, 2):
            name = f"eth{port}"
            self.vsctl("add-port", "br0", name, "--", "set", "interface", name, f"ofport={port}")

    def vsctl(self, *arguments: str) -> str:
        command = ["ovs-vsctl", f"--db={self.address}", "--no-wait", "--timeout=10", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def owners(self) -> set[str]:
        """The tags of the rows of ours: whose ports they are."""
        rows = json.loads(self.vsctl("--format=json", "--columns=external_ids", "list", "queue"))["data"]
        return {tag for ((_, pairs),) in rows for _, tag in pairs}

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()


def own_tags(dpid: int) -> set[str]:
    return {f"{dpid:016x}/{port}" for port in (1, 2)}
