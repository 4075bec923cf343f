"""The settings of TLS: where it is needed, and which files can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.config.config import ConfigError
from tests.support.controller.settings_file import load
from tests.support.controller.tls.yard_certificates import YardCertificates


@pytest.fixture(scope="module")
def yard(tmp_path_factory: pytest.TempPathFactory) -> YardCertificates:
    return YardCertificates(tmp_path_factory.mktemp("certificates"))


def tls(yard: YardCertificates, **other: str) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in (yard.settings | other).items()) + "}"


def test_the_files_are_those_of_the_settings(tmp_path: Path, yard: YardCertificates) -> None:
    config = load(tmp_path, f"openflow: {{host: 0.0.0.0, tls: {tls(yard)}}}\n")
    assert config.openflow.tls is not None
    assert config.openflow.tls.certificates == yard.for_switches
    assert config.database_certificates is None, "no database needs them"


@pytest.mark.parametrize("address", ["ssl:10.0.0.9:6640", "{1: tcp:10.0.0.9:6640, 2: ssl:10.0.0.8}"])
def test_databases_take_openflows_files_unless_they_have_their_own(
    tmp_path: Path, yard: YardCertificates, address: str
) -> None:
    text = f"ovsdb: {address}\nopenflow: {{tls: {tls(yard)}}}\n"
    assert load(tmp_path, text).database_certificates == yard.for_switches
    certificate, key = yard.files("good")
    own = tls(yard, certificate=str(certificate), key=str(key))
    found = load(tmp_path, f"{text}ovsdb_tls: {own}\n").database_certificates
    assert found is not None
    assert found.certificate == certificate


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("openflow: {host: 10.0.0.5}\n", ":1: openflow: listens on 10.0.0.5, which others can reach, without TLS; set"),
        ("openflow: {insecure: true, tls: TLS}\n", ":1: openflow: insecure is for a port without TLS"),
        ("ovsdb: ssl:10.0.0.9:6640\n", "ovsdb_tls: ovsdb has ssl:10.0.0.9:6640, which needs certificates; set"),
        ("ovsdb: pssl:6640\n", ":1: ovsdb: 'pssl:6640' is no address of a database"),
        ("openflow:\n  tls: {certificate: /nowhere/c}\n", ":2: openflow.tls.key: is missing"),
        ("openflow: {tls: true}\n", ":1: openflow.tls: is the truth value true; it should be"),
        ("openflow:\n  tls: OTHER_KEY\n", ":2: openflow.tls.key: the key "),
        ("openflow:\n  tls: NO_AUTHORITY\n", ":2: openflow.tls.authority: /nowhere/a cannot be read: No such file"),
        ("openflow:\n  tls: NO_LIST\n", ":2: openflow.tls.revoked: /nowhere/r cannot be read: No such file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, yard: YardCertificates, text: str, expected: str) -> None:
    texts = {
        "OTHER_KEY": tls(yard, key=str(yard.files("good")[1])),
        "NO_AUTHORITY": tls(yard, authority="/nowhere/a"),
        "NO_LIST": tls(yard, revoked="/nowhere/r"),
        "TLS": tls(yard),
    }
    for word, value in texts.items():
        text = text.replace(word, value)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert expected in str(caught.value)
