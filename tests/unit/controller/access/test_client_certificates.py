"""Who a client certificate is of, by what TLS says of it."""

from __future__ import annotations

from typing import Any

import pytest

from controller.access.caller import Role
from controller.access.client_certificates import ClientCertificate
from controller.access.tokens.entries import TokenTable, parse
from controller.documents.yaml_lines import read_yaml

LINES = "ops: {role: operator, certificate: ops.example.org}\n"
TABLE = TokenTable(parse(read_yaml(LINES), [])[0])
HOSTS = ["h1", "h2"]


def peer(common_name: str, *dns: str) -> dict[str, Any]:
    """Returns a certificate as ``getpeercert`` does; it ends on 1 January 2030."""
    return {
        "subject": ((("countryName", "XX"),), (("commonName", common_name),)),
        "subjectAltName": (*(("DNS", name) for name in dns), ("IP Address", "10.0.0.1")),
        "notAfter": "Jan  1 00:00:00 2030 GMT",
    }


ENDS_AT = 1_893_456_000.0


@pytest.mark.parametrize(
    ("shown", "name", "role"),
    [
        (peer("anything", "h1"), "h1", Role.HOST),
        (peer("anything", "h1.example.org", "h2"), "h2", Role.HOST),
        (peer("ops.example.org"), "ops", Role.OPERATOR),
        (peer("ops.example.org", "h1"), "ops", Role.OPERATOR),
    ],
)
def test_who_it_is_of(shown: dict[str, Any], name: str, role: Role) -> None:
    certificate = ClientCertificate.of(shown)
    assert certificate is not None
    caller = certificate.caller(TABLE, HOSTS, ENDS_AT - 1.0)
    assert caller is not None
    assert (caller.name, caller.role, caller.proof) == (name, role, "certificate")
    assert caller.host == (name if role is Role.HOST else None)


@pytest.mark.parametrize(
    "shown",
    [
        peer("h1"),
        peer("anything"),
        peer("anything", "h9"),
        peer("anything", "h1", "h2"),
        peer("anything", "H1"),
        peer("anything", "*"),
        peer("ops"),
    ],
)
def test_whose_it_is_not(shown: dict[str, Any]) -> None:
    certificate = ClientCertificate.of(shown)
    assert certificate is not None
    assert certificate.caller(TABLE, HOSTS, 0.0) is None


def test_it_ends_also_on_an_open_connection() -> None:
    certificate = ClientCertificate.of(peer("anything", "h1"))
    assert certificate is not None
    assert certificate.caller(None, HOSTS, ENDS_AT) is None


def test_a_client_without_one_shows_nothing() -> None:
    assert ClientCertificate.of(None) is None
    assert ClientCertificate.of({}) is None
