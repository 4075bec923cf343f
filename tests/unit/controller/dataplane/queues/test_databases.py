"""Several switches with managed queues, each in a real database of its own: ovsdb-server as a plain process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready, reason
from tests.support.controller.dataplane.ovsdb_server import OvsdbServer, own_tags


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[OvsdbServer, OvsdbServer]]:
    with contextlib.ExitStack() as stack:
        made = [OvsdbServer(tmp_path / f"s{dpid}", dpid) for dpid in (1, 2)]
        for server in made:
            stack.callback(server.close)
        yield made[0], made[1]


def test_each_switch_gets_its_queues_in_its_own_database(servers: tuple[OvsdbServer, OvsdbServer]) -> None:
    plane = make_plane(queues="managed", ovsdb={1: servers[0].address, 2: servers[1].address})
    for dpid in (1, 2):
        connect(plane, dpid)
    ready(plane, 1, 2)
    for dpid, server in enumerate(servers, 1):
        assert server.owners() == own_tags(dpid)
        assert server.vsctl("get", "port", "eth1", "qos").strip() != "[]"
    plane.close()


def test_a_switch_that_is_in_another_database_is_told_how_to_say_so(servers: tuple[OvsdbServer, OvsdbServer]) -> None:
    plane = make_plane(queues="managed", ovsdb=servers[0].address)
    switches = [connect(plane, dpid) for dpid in (1, 2)]
    ready(plane, 1)
    assert "set ovsdb (an address, or one for each switch)" in reason(plane, switches[1])
    assert servers[1].owners() == set()
    plane.close()


def test_a_switch_without_a_database_is_said(servers: tuple[OvsdbServer, OvsdbServer]) -> None:
    plane = make_plane(queues="managed", ovsdb={1: servers[0].address})
    switches = [connect(plane, dpid) for dpid in (1, 0x2A)]
    ready(plane, 1)
    assert "ovsdb has no address for switch 0x2a; add it, or set queues: existing" in reason(plane, switches[1])
    plane.close()
