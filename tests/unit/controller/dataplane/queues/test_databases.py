"""Several switches with managed queues, each in a real database of its own: ovsdb-server as a plain process."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.controller.fake_datapath import FakeDatapath
from tests.unit.controller.dataplane.test_dataplane import connect, make_plane, ready, until

SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"


class Server:
    """The database of one server that has one bridge with the ports 1 and 2, as its switch would have filled it."""

    def __init__(self, folder: Path, dpid: int) -> None:
        folder.mkdir()
        self.address = f"unix:{folder}/db.sock"
        database = str(folder / "conf.db")
        subprocess.run(["ovsdb-tool", "create", database, SCHEMA], check=True)
        command = ["ovsdb-server", database, f"--remote=p{self.address}", "--verbose=off", f"--unixctl={folder}/ctl"]
        self._process = subprocess.Popen(command)
        self._wait_for(folder / "db.sock")
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

    def _wait_for(self, path: Path) -> None:
        deadline = time.monotonic() + 10
        while not path.exists():
            assert self._process.poll() is None, "ovsdb-server has ended"
            assert time.monotonic() < deadline
            time.sleep(0.01)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    with contextlib.ExitStack() as stack:
        made = [Server(tmp_path / f"s{dpid}", dpid) for dpid in (1, 2)]
        for server in made:
            stack.callback(server.close)
        yield made[0], made[1]


def own_tags(dpid: int) -> set[str]:
    return {f"{dpid:016x}/{port}" for port in (1, 2)}


def test_each_switch_gets_its_queues_in_its_own_database(servers: tuple[Server, Server]) -> None:
    plane = make_plane(queues="managed", ovsdb={1: servers[0].address, 2: servers[1].address})
    for dpid in (1, 2):
        connect(plane, dpid)
    ready(plane, 1, 2)
    for dpid, server in enumerate(servers, 1):
        assert server.owners() == own_tags(dpid)
        assert server.vsctl("get", "port", "eth1", "qos").strip() != "[]"
    plane.close()


def test_a_switch_that_is_in_another_database_is_told_how_to_say_so(servers: tuple[Server, Server]) -> None:
    plane = make_plane(queues="managed", ovsdb=servers[0].address)
    switches = [connect(plane, dpid) for dpid in (1, 2)]
    ready(plane, 1)
    assert "set ovsdb (an address, or one for each switch)" in reason(plane, switches[1])
    assert servers[1].owners() == set()
    plane.close()


def test_a_switch_without_a_database_is_said(servers: tuple[Server, Server]) -> None:
    plane = make_plane(queues="managed", ovsdb={1: servers[0].address})
    switches = [connect(plane, dpid) for dpid in (1, 0x2A)]
    ready(plane, 1)
    assert "ovsdb has no address for switch 0x2a; add it, or set queues: existing" in reason(plane, switches[1])
    plane.close()


def reason(plane: Any, switch: FakeDatapath) -> str:
    def found() -> str | None:
        status = next(status for status in plane.status() if status.dpid == switch.id)
        return status.reason if status.reason != "being set up" else None

    return str(until(found))
