"""SIGHUP at a running controller: what it has changed is in the audit."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.access.certificates.authority import utc_now
from tests.support.controller.tls.tls_yard import TlsYard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[TlsYard]:
    controller = TlsYard(tmp_path)
    controller.start()
    yield controller
    controller.stop()


def newest(yard: TlsYard) -> dict[str, Any]:
    (record,) = yard.call("GET", "/v1/audit?limit=1").json()["records"]
    return dict(record)


def test_a_renewal_is_in_the_audit_and_a_signal_that_changes_nothing_is_not(yard: TlsYard) -> None:
    yard.renew()
    assert newest(yard)["action"] == "start"
    yard.certificates.folder.revoke(["switch-good"], utc_now())
    yard.renew()
    record = newest(yard)
    assert (record["who"], record["role"], record["action"]) == ("signal", "machine", "reload")
    assert (record["address"], record["outcome"]) == (socket.gethostname(), "done")
    revoked = yard.certificates.settings["revoked"]
    assert record["before"].keys() == record["after"].keys() == {revoked}
    assert record["before"][revoked][0].endswith("revoked: 1")
    assert record["after"][revoked][0].endswith("revoked: 2")


def test_files_that_cannot_be_used_are_in_the_audit(yard: TlsYard) -> None:
    certificate = Path(yard.certificates.settings["certificate"])
    certificate.write_text("nothing")
    yard.renew()
    record = newest(yard)
    assert (record["who"], record["outcome"]) == ("signal", "refused")
    assert record["detail"].startswith(f"{yard.config}:")
    assert "openflow.tls" in record["detail"]
    assert "PRIVATE KEY" not in yard.call("GET", "/v1/audit").text
