"""A real Open vSwitch over TLS: its OpenFlow and its database, with every kind of certificate, and through renewals."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from eventlet.green.ssl import GreenSSLSocket

from controller.access.certificates.authority import utc_now
from controller.access.certificates.contexts import Certificates, TlsContext
from controller.dataplane.queues.ovsdb import Database
from controller.dataplane.queues.ovsdb_select import OvsdbError
from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.openflow.openvswitch_process import DPID, OpenVSwitch
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.tls.tls_yard import TlsYard


@pytest.fixture(scope="module")
def switch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenVSwitch]:
    with OpenVSwitch(tmp_path_factory.mktemp("switch") / "ovs") as made:
        yield made


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TlsYard]:
    yard = TlsYard(tmp_path_factory.mktemp("yard"))
    yield yard.start()
    yard.stop()


def show(switch: OpenVSwitch, yard: TlsYard, name: str) -> None:
    """Have the switch show a certificate of this kind from its next connection on, and connect anew."""
    switch.vsctl("del-controller", "br0")
    switch.set_ssl(*yard.certificates.files(name), yard.certificates.folder.authority_of("controller"))
    switch.connect(f"ssl:127.0.0.1:{yard.openflow_port}")


def job(port: int) -> dict[str, Any]:
    return {"tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}]}


def has_rules(switch: OpenVSwitch, *ports: int) -> bool:
    flows = switch.flows()
    return all(f"tp_dst={port}" in flows and f"tp_src={port}" in flows for port in ports)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expired", "its certificate has expired"),
        ("foreign", "its certificate is of an authority that is not trusted here"),
        ("host", "its certificate is of an authority that is not trusted here"),
        ("revoked", "its certificate is revoked"),
    ],
)
def test_a_switch_with_a_bad_certificate_gets_no_rule(
    switch: OpenVSwitch, tmp_path: Path, name: str, expected: str
) -> None:
    yard = TlsYard(tmp_path)
    try:
        yard.start()
        show(switch, yard, name)
        wait_until(lambda: f"127.0.0.1 may not connect as a switch: {expected}\n" in yard.log(), 20)
        assert not switch.is_connected()
        assert switch.flows().count("cookie") == 0
    finally:
        yard.stop()


def test_a_switch_with_a_good_certificate_gets_its_rules(switch: OpenVSwitch, yard: TlsYard) -> None:
    show(switch, yard, "good")
    wait_until(switch.is_connected, 20)
    wait_until(lambda: yard.call("GET", "/readyz").ok, 20)
    assert yard.call("PUT", "/v1/jobs/first", job(7001)).status_code == 201
    wait_until(lambda: has_rules(switch, 7001), 20, what="the job's rules")


def test_renewals_while_rules_flow_lose_none(switch: OpenVSwitch, yard: TlsYard) -> None:
    if not switch.is_connected():
        show(switch, yard, "good")
        wait_until(lambda: yard.call("GET", "/readyz").ok, 20)
    before = yard.log().count("has connected")
    ports = range(7100, 7130)
    for n, port in enumerate(ports):
        assert yard.call("PUT", f"/v1/jobs/job-{port}", job(port)).status_code == 201
        if n % 10 == 5:
            yard.certificates.make("controller", "controller", replace=True)
            yard.certificates.folder.revoke(["revoked"], utc_now())
            yard.renew()
    wait_until(lambda: has_rules(switch, *ports), 20, what="the rules of all jobs")
    assert yard.log().count("has connected") == before, "the switch has kept its connection"
    assert switch.is_connected()
    assert yard.call("GET", "/v1/status").json()["plan_errors"] == 0


def test_a_switch_that_is_revoked_goes_and_comes_back_with_a_new_certificate(
    switch: OpenVSwitch, yard: TlsYard
) -> None:
    yard.certificates.make("switch", "renewed")
    show(switch, yard, "renewed")
    wait_until(switch.is_connected, 20)
    yard.certificates.folder.revoke(["renewed"], utc_now())
    yard.renew()
    wait_until(lambda: not switch.is_connected(), 20)
    yard.certificates.make("switch", "renewed", replace=True)
    show(switch, yard, "renewed")
    wait_until(switch.is_connected, 20)


def test_certificates_of_openvswitch_pki_work(tmp_path: Path) -> None:
    def pki(*arguments: str) -> None:
        command = ["ovs-pki", f"--dir={tmp_path}/pki", f"--log={tmp_path}/pki.log", *arguments]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)

    pki("init")
    pki("req+sign", "ctl", "controller")
    pki("req+sign", "s1", "switch")
    tls = {
        "certificate": f"{tmp_path}/ctl-cert.pem",
        "key": f"{tmp_path}/ctl-privkey.pem",
        "authority": f"{tmp_path}/pki/switchca/cacert.pem",
    }
    port = free_port()
    yard = Controller(tmp_path, openflow={"port": port, "tls": tls}, probe=False, queues="existing")
    # A switch of its own: Open vSwitch keeps a certificate with a key of another kind (ours have EC keys) till it ends.
    with OpenVSwitch(tmp_path / "ovs") as switch:
        try:
            yard.start()
            authority = tmp_path / "pki" / "controllerca" / "cacert.pem"
            switch.set_ssl(tmp_path / "s1-cert.pem", tmp_path / "s1-privkey.pem", authority)
            switch.connect(f"ssl:127.0.0.1:{port}")
            wait_until(lambda: yard.call("GET", "/readyz").ok, 20, what=yard.log())
        finally:
            yard.stop()


# The database --------------------------------------------------------------------------------------------------------


@pytest.fixture
def address(switch: OpenVSwitch) -> Iterator[str]:
    port = free_port()
    switch.listen(f"pssl:{port}:127.0.0.1")
    yield f"ssl:127.0.0.1:{port}"
    switch.vsctl("--no-wait", "del-manager")


def own_ssl(switch: OpenVSwitch, yard: TlsYard, name: str) -> None:
    """The database shows a certificate of this kind."""
    switch.vsctl("del-ssl")
    switch.set_ssl(*yard.certificates.files(name), yard.certificates.folder.authority_of("controller"))


def test_queues_are_made_through_a_database_with_tls(switch: OpenVSwitch, address: str, tmp_path: Path) -> None:
    yard = TlsYard(tmp_path, queues="managed", ovsdb=address)
    try:
        yard.start()
        show(switch, yard, "good")
        wait_until(lambda: yard.call("GET", "/readyz").ok, 20)
        assert switch.vsctl("get", "port", "p1", "qos").strip() != "[]"
        assert f"{DPID:016x}/1" in switch.vsctl("--columns=external_ids", "list", "queue")
    finally:
        yard.stop()


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("expired", "its certificate has expired"),
        ("foreign", "its certificate is of an authority that is not trusted here"),
        ("revoked", "its certificate is revoked"),
    ],
)
def test_a_database_with_a_bad_certificate_is_not_read(
    switch: OpenVSwitch, yard: TlsYard, address: str, name: str, expected: str
) -> None:
    database = Database(address, TlsContext(yard.certificates.for_switches, "client"))
    own_ssl(switch, yard, "good")
    wait_until(lambda: reads(database), 20)
    own_ssl(switch, yard, name)
    wait_until(lambda: not reads(database), 20)
    with pytest.raises(OvsdbError, match=f"{address}: the database cannot be reached by TLS: {expected}"):
        database.read()


@pytest.mark.parametrize("pause_seconds", [0.0, 0.1])
def test_a_database_refuses_who_is_not_the_controller(
    switch: OpenVSwitch, yard: TlsYard, address: str, pause_seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the pause the database has hung up before it is asked: its reason is read all the same."""
    files = yard.certificates.for_switches
    own_ssl(switch, yard, "good")
    wait_until(lambda: reads(Database(address, TlsContext(files, "client"))), 20)
    handshake = GreenSSLSocket.do_handshake

    def slow(connection: GreenSSLSocket) -> None:
        handshake(connection)
        time.sleep(pause_seconds)

    monkeypatch.setattr(GreenSSLSocket, "do_handshake", slow)
    for name in ("good", "host", "foreign"):
        certificate, key = yard.certificates.files(name)
        context = TlsContext(Certificates(certificate, key, files.authority), "client")
        with pytest.raises(OvsdbError, match="the database cannot be reached by TLS: it does not trust the authority"):
            Database(address, context).read()
    with pytest.raises(OvsdbError, match="it needs certificates, and no setting names any"):
        Database(address).read()


def reads(database: Database) -> bool:
    try:
        database.read()
    except OvsdbError:
        return False
    return True
