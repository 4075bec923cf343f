"""A host with a plan in force, in a network namespace of the test's own, and what somebody else does to it."""

from __future__ import annotations

import contextlib
import logging
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from controller.wire import HostPlan
from evaluation.bench.support.hosts.own_namespace import own_namespace
from host_reporter.marking import iptables
from host_reporter.marking.enforcement import Enforcement
from host_reporter.marking.iptables import Marker
from host_reporter.nic.interface import Nic
from host_reporter.nic.trees import Ordered, Trees
from host_reporter.notices import Notices

NIC = "ty0"
PORTS = {"a": 5001, "b": 5002, "c": 5003}
FOREIGN = ("-A", "FORWARD", "-m", "comment", "--comment", "others")


def sh(command: str, text: str | None = None) -> str:
    done = subprocess.run(["sh", "-ec", command], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def variants() -> tuple[str, ...]:
    """The variants of iptables that this kernel can mark with."""
    with own_namespace():
        found = tuple(
            variant
            for variant in ("iptables-legacy", "iptables-nft")
            if subprocess.run([variant, "-t", "mangle", "-N", "TRY"], capture_output=True, check=False).returncode == 0
        )
    assert found, "neither variant of iptables works in this kernel"
    return found


def plan(
    epoch: int = 1, dscps: Sequence[int] = (59, 51, 43), ports: dict[str, int] | None = None, **more: Any
) -> HostPlan:
    ports = PORTS if ports is None else ports
    marks = [
        {"job": job, "service_class": k, "dscp": dscp, "local_port": port}
        for k, ((job, port), dscp) in enumerate(zip(ports.items(), dscps, strict=False))
    ]
    values = {
        "host": "h1",
        "epoch": epoch,
        "policy": "fifo",
        "mode": "marked",
        "class_dscp": (59, 51, 43),
        "marks": marks,
    }
    return HostPlan.model_validate(values | {"class_floor": 0.01, "other_floor": 0.1, "egress_bps": 1e8} | more)


def walked(saved: str, chain: str = "OUTPUT") -> tuple[Any, ...]:
    """What packets of a chain go through, whatever the names of the chains below it."""
    found = []
    for line in saved.splitlines():
        words = line.split()
        if words[:2] == ["-A", chain]:
            target = words[-1] if words[-2] in ("-j", "-g") else ""
            is_chain = f":{target} - " in saved
            found.append((" ".join(words[2:-1] if is_chain else words[2:]), walked(saved, target) if is_chain else ()))
    return tuple(found)


class Host:
    """An enforcement of the agent's here, without the agent."""

    def __init__(self, variant: str | None, caplog: pytest.LogCaptureFixture) -> None:
        self.variant = variant
        self._caplog = caplog
        caplog.set_level(logging.INFO)
        self.marker = Marker() if variant is not None else None
        self.nic = Nic(NIC, None) if variant is None else None
        notices = Notices(logging.getLogger("agent"))
        nic = self.nic
        trees = Trees([Ordered(NIC)], notices, make=lambda _name: nic) if nic is not None else None
        self.enforcement = Enforcement(self.marker, trees, notices)

    def apply(self, wanted: HostPlan) -> None:
        assert self.enforcement.apply(wanted, look=False)

    def said(self, words: str = "somebody else has changed") -> list[str]:
        """What the log says with these words."""
        return [record.getMessage() for record in self._caplog.records if words in record.getMessage()]

    def forget(self) -> None:
        self._caplog.clear()

    def saved(self) -> str:
        """The table's text, without the time at which it was told."""
        return sh(f"{self.variant}-save -t mangle | grep -v '^#'")

    def iptables(self, *commands: str) -> None:
        for command in commands:
            sh(f"{self.variant} -t mangle {command}")

    def live(self) -> str:
        """The chain with the marks' rules that is in force."""
        return "TRAINYARD-A" if "-A TRAINYARD -g TRAINYARD-A\n" in self.saved() else "TRAINYARD-B"


@contextlib.contextmanager
def marked(variant: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host whose packets are marked with this variant."""
    monkeypatch.setattr(iptables, "VARIANTS", (variant,))
    with own_namespace():
        host = Host(variant, caplog)
        host.iptables(" ".join(FOREIGN))
        host.apply(plan())
        assert not host.said()
        yield host
        host.enforcement.remove()
        assert "TRAINYARD" not in host.saved()
        assert "others" in host.saved()


def make_interface() -> None:
    sh(f"ip link add {NIC} type veth peer name ty1 && ip link set {NIC} up")


@contextlib.contextmanager
def ordered(caplog: pytest.LogCaptureFixture) -> Iterator[Host]:
    """A host whose interface has the plan's tree."""
    with own_namespace():
        make_interface()
        host = Host(None, caplog)
        host.apply(plan())
        yield host
        host.enforcement.remove()
        assert "7472:" not in sh(f"tc qdisc show dev {NIC}")
