"""Reading a switch's database: what is asked, what may be answered, and that it needs no other process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from eventlet.green import socket
from ryu.lib import hub

from controller.dataplane.queues import ovsdb, ovsdb_select
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError, select
from evaluation.bench.support.free_port import free_port
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready, reason_of
from tests.support.controller.dataplane.ovsdb_server import OvsdbServer as Server

TABLES = {"Port": ("_uuid", "qos", "queues", "ofport")}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "s1", 1)
    yield made
    made.close()


@contextmanager
def answering(folder: Path, *parts: bytes, hold: bool = False) -> Iterator[tuple[str, list[Any]]]:
    """The address of what answers the first question with ``parts`` and hangs up, and what it was asked."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(folder / "db.sock"))
    listener.listen(8)
    asked: list[Any] = []

    def serve() -> None:
        while True:
            connection, _ = listener.accept()
            asked.append(json.loads(connection.recv(65536)))
            for part in parts:
                connection.sendall(part)
                hub.sleep(0.01)
            if hold:
                connection.recv(1)
            connection.close()

    thread = hub.spawn(serve)
    yield f"unix:{folder}/db.sock", asked
    hub.kill(thread)
    listener.close()


def answer(rows: list[Any]) -> bytes:
    return json.dumps({"id": 0, "error": None, "result": [{"rows": rows}]}).encode()


def test_sets_maps_and_ids_are_read_from_an_answer_in_parts(tmp_path: Path) -> None:
    row = {"_uuid": ["uuid", "u"], "qos": ["set", []], "queues": ["map", [[0, ["uuid", "a"]]]], "ofport": 3}
    whole = answer([row])
    # Each part ends with a brace, and none but the last ends the answer.
    cut = whole.index(b"}") + 1
    with answering(tmp_path, whole[:cut], whole[cut:]) as (address, asked):
        found = select(address, TABLES)
    assert found == {"Port": ({"_uuid": "u", "qos": frozenset(), "queues": {0: "a"}, "ofport": 3},)}
    (question,) = asked
    assert question["method"] == "transact"
    assert question["params"] == [
        "Open_vSwitch",
        {"op": "select", "table": "Port", "where": [], "columns": ["_uuid", "qos", "queues", "ofport"]},
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "hung up"),
        (b"x}", "hung up"),
        (b"{}", "none of a database"),
        (b'{"error": null, "result": []}', "none of a database"),
        (b'{"error": null, "result": [1]}', "none of a database"),
        (b'{"error": null, "result": [{"rows": [{"qos": 1}]}]}', "none of a database"),
        (b'{"error": {"error": "unknown database"}, "result": null}', "refuses to be read.*unknown database"),
        (b'{"error": null, "result": [{"error": "not allowed"}]}', "refuses to be read.*not allowed"),
    ],
)
def test_what_is_no_answer_is_one_clear_line(tmp_path: Path, text: bytes, said: str) -> None:
    with answering(tmp_path, text) as (address, _), pytest.raises(OvsdbError, match=said) as caught:
        select(address, TABLES)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(address)


def test_a_database_that_says_nothing_or_too_much_is_given_up(tmp_path: Path) -> None:
    silent = answering(tmp_path, b"{", hold=True)
    with silent as (address, _), pytest.raises(OvsdbError, match=r"not answered within 0\.1 s"):
        select(address, TABLES, seconds=0.1)
    (tmp_path / "db.sock").unlink()
    with answering(tmp_path, answer([])) as (address, _), pytest.raises(OvsdbError, match="more than 10 bytes"):
        select(address, TABLES, max_answer=10)


def test_what_a_database_answers_wrongly_is_the_switchs_reason(tmp_path: Path) -> None:
    with answering(tmp_path, b"{}") as (address, _):
        plane = make_plane(queues="managed", ovsdb=address)
        connect(plane)
        reason_of(plane, "none of a database")
        plane.close()


def test_a_real_database_is_read_over_unix_and_tcp(server: Server) -> None:
    found = Database(server.address).read()
    assert [port.name for port in ovsdb.bridge_ports(found, 1) or ()] == ["eth1", "eth2"]
    folder = server.address.removeprefix("unix:").removesuffix("/db.sock")
    for host in ("127.0.0.1", "[::1]"):
        port = free_port()
        remote = f"ptcp:{port}:{host}"
        command = ["ovs-appctl", f"--target={folder}/ctl", "ovsdb-server/add-remote", remote]
        subprocess.run(command, check=True, capture_output=True)
        assert Database(f"tcp:{host}:{port}").read() == found


def test_a_path_that_is_not_absolute_begins_at_open_vswitchs_sockets(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OVS_RUNDIR", server.address.removeprefix("unix:").removesuffix("/db.sock"))
    assert Database("unix:db.sock").read() == Database(server.address).read()


def test_looks_at_a_database_that_is_as_it_should_be_start_no_process(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane = make_plane(queues="managed", ovsdb=server.address, queue_seconds=0.02)
    connect(plane)
    ready(plane)
    reads = []
    read = Database.read

    def run(_self: Database, *arguments: str) -> str:
        raise AssertionError(arguments)

    def count(self: Database) -> ovsdb_select.State:
        reads.append(1)
        return read(self)

    monkeypatch.setattr(Database, "run", run)
    monkeypatch.setattr(Database, "read", count)
    with hub.Timeout(10):
        while len(reads) < 3:
            hub.sleep(0.01)
    assert [status.ready for status in plane.status()] == [True]
    plane.close()
