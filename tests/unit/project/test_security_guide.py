"""The guide to TLS, followed as it is written: with the real commands, switch, controller and agent.

Names of machines and folders are replaced, so that all three machines are this one, and nothing else.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.access.tokens.file import read_tokens
from controller.access.tokens.hashes import hashed, new_token
from controller.config.config import load_config
from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.openflow.openvswitch_process import OpenVSwitch
from evaluation.bench.support.waiting import wait_until
from tests.support.paths import ROOT

GUIDE = ROOT / "docs" / "guides" / "security.md"


def blocks(title: str) -> list[str]:
    """Returns the shell blocks below a heading, up to the next one."""
    found = re.search(rf"^### {title}\n(.*?)(?=^##)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title}"
    return re.findall(r"^```console\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)


def examples(title: str) -> list[str]:
    """Returns the YAML blocks below a heading, up to the next one."""
    found = re.search(rf"^##+ {title}\n(.*?)(?=^##)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title}"
    return re.findall(r"^```yaml\n(.*?)^```", found[1], re.MULTILINE | re.DOTALL)


class Reader:
    """Does what the guide says, on one machine. ``folder`` stands for the root of the file system."""

    def __init__(self, folder: Path, switch: OpenVSwitch) -> None:
        database, openflow, api = free_port(), free_port(), free_port()
        self._replaced = (
            ("scp ", "cp "),
            ("ssh root@10.1.0.1 ", ""),
            ("root@10.0.0.2:", ""),
            ("root@10.1.0.1:", ""),
            ("pssl:6640", f"pssl:{database}:127.0.0.1"),
            ("6640", str(database)),
            ("6653", str(openflow)),
            ("8080", str(api)),
            ("10.0.0.5", "127.0.0.1"),
            ("10.0.0.2", "127.0.0.1"),
            ("/etc/openvswitch", f"{folder}/etc/openvswitch"),
            ("/etc/trainyard", f"{folder}/etc/trainyard"),
            ("~/", f"{folder}/home/"),
        )
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = os.environ | {
            "PATH": path,
            "OVS_RUNDIR": str(switch.folder),
            "TRAINYARD_PROGRESS_DIR": str(folder / "progress"),
            "PYTHONWARNINGS": "ignore",
        }
        self._folder = folder
        self._log = folder / "log"
        self._running: list[subprocess.Popen[bytes]] = []
        (folder / "etc" / "openvswitch").mkdir(parents=True)

    def run(self, block: str) -> subprocess.CompletedProcess[str]:
        """Returns what came of a block; its first failure ends it."""
        command = ["bash", "-e", "-c", self._here(block)]
        return subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def follow(self, block: str) -> None:
        """Run a block that must succeed."""
        done = self.run(block)
        assert done.returncode == 0, f"{block}: {done.stderr}"

    def start(self, block: str) -> None:
        """Start the program of a block, which goes on until the end."""
        with self._log.open("ab") as log:
            # The shell becomes the block's only command.
            command = ["bash", "-c", self._here(block)]
            self._running.append(
                subprocess.Popen(command, cwd=self._folder, env=self._environment, stdout=log, stderr=log)
            )

    def said(self) -> str:
        """Returns what the programs that were started have logged."""
        return self._log.read_text()

    def is_connected(self) -> bool:
        """Returns whether the switch has a controller."""
        return "true" in self.run("ovs-vsctl get controller br0 is_connected").stdout

    def close(self) -> None:
        for process in reversed(self._running):
            process.terminate()
            process.wait(20)

    def _here(self, text: str) -> str:
        for word, other in self._replaced:
            text = text.replace(word, other)
        if self._running:
            text = text.replace(
                "systemctl kill --signal=HUP --kill-whom=main trainyard", f"kill -HUP {self._running[0].pid}"
            )
        return text


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    with OpenVSwitch(tmp_path / "ovs") as switch:
        reader = Reader(tmp_path, switch)
        yield reader
        reader.close()


def test_from_the_first_certificate_to_a_revocation(reader: Reader) -> None:
    steps = iter(blocks("Ten minutes"))
    for _ in ("the certificates", "the controller's files and tokens", "the settings"):
        reader.follow(next(steps))
    reader.start(next(steps))
    wait_until(lambda: "the API listens on https:" in reader.said(), 60, what="the controller's start")
    for _ in ("the switch's files", "the switch's own settings", "the server's files"):
        reader.follow(next(steps))
    wait_until(lambda: "switch 0000000000000051 has connected" in reader.said(), 30, what="the switch")
    has_queues = "ovs-vsctl list queue | grep 0000000000000051/1"
    wait_until(lambda: reader.run(has_queues).returncode == 0, 30, what="queues, made through the database")
    reader.start(next(steps))
    wait_until(lambda: "host gpu01 reports to https:" in reader.said(), 30, what="the agent's start")

    shown = reader.run(next(steps))
    # The switch in memory forwards no packets, so no port is proven.
    assert (shown.returncode, shown.stderr) == (1, "")
    assert re.search(r"^0000000000000051 +1 p1 +not proven", shown.stdout, re.MULTILINE), shown.stdout

    folder, *refused = next(steps).splitlines()
    expected = ("a bearer token is required", "its certificate is not trusted", "certificate required")
    for command, reason in zip(refused, expected, strict=True):
        done = reader.run(f"{folder}\n{command}")
        assert done.returncode != 0
        assert reason in done.stderr
        assert f"`{reason}`" in GUIDE.read_text()
    assert next(steps, None) is None
    wait_until(lambda: "127.0.0.1 may not connect as a switch: it shows no certificate" in reader.said(), 10)

    controllers, switchs = blocks("Renewal")
    (revocation,) = blocks("Revocation")
    reader.follow(controllers)
    wait_until(lambda: "the settings have been read again" in reader.said(), 20)
    assert reader.said().count("has connected") == 1, "the switch has kept its connection"
    reader.follow(revocation)
    wait_until(lambda: not reader.is_connected(), 20, what="the end of the revoked switch's connection")
    reader.follow(switchs)
    wait_until(reader.is_connected, 60, what="the switch with its new certificate")


def test_the_command_that_makes_a_token_and_the_check_after_it(reader: Reader) -> None:
    steps = blocks("Ten minutes")
    for step in steps[:3]:
        reader.follow(step)
    (named,) = blocks("Named tokens")
    reader.follow(named)


def test_the_example_of_named_tokens_is_a_file_of_tokens(tmp_path: Path) -> None:
    (example,) = examples("Named tokens")
    tokens = [new_token() for _ in range(example.count("sha256:..."))]
    for token in tokens:
        example = example.replace("sha256:...", hashed(token), 1)
    file = tmp_path / "tokens.yaml"
    file.write_text(example)
    table = read_tokens(file, ["gpu01"])
    callers = [table.of_token(token.encode(), 0.0) for token in tokens]
    assert [(caller.name, caller.role) for caller in callers if caller is not None] == [
        ("night-shift", "operator"),
        ("grafana", "viewer"),
        ("vision", "tenant"),
        ("gpu01", "host"),
        ("racks", "enrol"),
    ]


@pytest.mark.parametrize("title", ["OpenID Connect", "Who did"])
def test_the_examples_of_settings_are_right(title: str, tmp_path: Path) -> None:
    (example,) = examples(title)
    file = tmp_path / "trainyard.yaml"
    file.write_text(example)
    config = load_config(file)
    assert config.api.oidc is not None or config.audit.file is not None
