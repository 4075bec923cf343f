"""``trainyard certs``: what it prints can be done as it stands, and what it refuses."""

from __future__ import annotations

import re
import shlex
import textwrap
from pathlib import Path

import pytest

from controller.access.certificates.contexts import make_context
from controller.access.certificates.pem import read_certificates, read_lists
from controller.cli.main import main
from controller.config.config import load_config
from host_reporter.options import read_options


def certs(capsys: pytest.CaptureFixture[str], folder: Path, *options: str) -> tuple[int, str, str]:
    status = main(["certs", str(folder), *options])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_the_settings_that_it_prints_are_right(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "certs"
    status, out, err = certs(capsys, folder, "--controller", "10.0.0.5", "--switch", "s1", "--host", "gpu01")
    assert (status, err) == (0, "")
    block = re.search(r"^  openflow:\n(?:^  .*\n)+", out, re.MULTILINE)
    assert block is not None
    file = tmp_path / "trainyard.yaml"
    file.write_text(textwrap.dedent(block[0]).replace("/etc/trainyard", str(folder)).replace("SWITCH", "10.0.0.9"))
    config = load_config(file)
    assert config.openflow.tls is not None
    make_context(config.openflow.tls.certificates, "server")
    assert config.database_certificates == config.openflow.tls.certificates
    for name in re.findall(r"[\w-]+\.(?:pem|key)", out.partition("Controller: ")[2]):
        assert list(folder.rglob(name)), f"{name} is named and was not made"


def test_the_commands_that_it_prints_name_the_controller_and_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = certs(capsys, tmp_path, "--controller", "fd00::5", "--switch", "s1", "--host", "gpu01")
    own = "/etc/openvswitch/switch-s1"
    assert f"  ovs-vsctl set-ssl {own}.key {own}.pem /etc/openvswitch/ca-controller.pem\n" in out
    assert "  ovs-vsctl set-controller BRIDGE ssl:[fd00::5]:6653\n" in out
    assert "  host-reporter --controller https://[fd00::5]:8080 --host gpu01 \\\n" in out
    assert "    client_authority: /etc/trainyard/ca-host.pem\n" in out, (
        "or the controller would not know the certificate"
    )
    assert "    client_revoked: /etc/trainyard/revoked-host.pem\n" in out, "or a revocation would change nothing"
    assert f"Keep {tmp_path}/authorities here" in out
    _, out, _ = certs(capsys, tmp_path, "--switch", "s2")
    assert "set-controller BRIDGE ssl:CONTROLLER:6653" in out
    assert "Keep " not in out


def test_days_and_revocation(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(capsys, tmp_path, "--switch", "s1", "--days", "2")
    (made,) = read_certificates(tmp_path / "switch-s1.pem")
    assert (made.not_valid_after_utc - made.not_valid_before_utc).days == 2
    status, out, _ = certs(capsys, tmp_path, "--revoke", "s1", "--switch", "s1", "--replace")
    assert status == 0
    assert out.startswith(f"revoked   {tmp_path}/revoked-switch.pem\nreplaced  {tmp_path}/switch-s1.pem\n")
    (revoked,) = read_lists(tmp_path / "revoked-switch.pem")
    assert [each.serial_number for each in revoked] == [made.serial_number], "the new one is not revoked"


def test_it_says_how_a_revocation_ends_open_connections(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(capsys, tmp_path, "--switch", "s1", "--host", "gpu01")
    _, out, _ = certs(capsys, tmp_path, "--revoke", "gpu01")
    assert "client_revoked: /etc/trainyard/revoked-host.pem\nand run: trainyard reload" in out
    _, out, _ = certs(capsys, tmp_path, "--revoke", "s1")
    assert "Controller: copy revoked-switch.pem to /etc/trainyard, then run: trainyard reload" in out


def test_the_agents_command_that_it_prints_is_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = certs(capsys, tmp_path, "--controller", "10.0.0.5", "--host", "gpu01")
    command = re.search(r"^  host-reporter (.*\\\n.*)$", out, re.MULTILINE)
    assert command is not None
    options = read_options(shlex.split(command[1].replace("\\\n", "")), {})
    assert (options.host, options.controller) == ("gpu01", "https://10.0.0.5:8080")
    for file in (options.ca_file, options.certificate_file, options.key_file):
        assert file is not None
        assert (tmp_path / file.name).exists()


def test_nothing_to_do_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certs(capsys, tmp_path)
    status, out, _ = certs(capsys, tmp_path)
    said = f"{tmp_path} stays as it is: name a --switch, a --host or a --controller to make\n"
    assert (status, out) == (0, said)


@pytest.mark.parametrize(
    ("options", "status", "expected"),
    [
        (("--switch", "../s1"), 2, "--switch: '../s1' is no name of letters, digits, dots, dashes, underscores"),
        (("--host", "a b"), 2, "--host: 'a b' is no name"),
        (("--controller", "https://x/"), 2, "--controller: 'https://x/' is no name"),
        (("--days", "0"), 2, "--days: 0 is not from 1 to 3650"),
        (("--revoke", "s9"), 1, "no certificate of a switch or a host named s9 was made in"),
        (("--switch", "there"), 1, "switch-there.pem exists already; --replace makes a new certificate"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], status: int, expected: str
) -> None:
    certs(capsys, tmp_path, "--switch", "there")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    ended, out, err = certs(capsys, tmp_path, *options)
    assert (ended, out, len(err.splitlines())) == (status, "", 1)
    assert expected in err
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
