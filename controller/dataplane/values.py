"""What the dataplane is told and what it answers, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from controller.model import MAX_CLASSES
from controller.rules.fabric import Link


@dataclass(frozen=True, slots=True)
class Settings:
    """How the dataplane treats its switches.

    ``classes`` is K, the number of job classes; a port has one queue more. ``ovsdb`` is where the switches' database
    answers: one address for all, or one by datapath id. ``job_floor`` and ``other_floor`` are the
    shares of a link that each class and all other traffic keep. ``rates_bps`` gives the rate of a switch's port
    by (dpid, port number), where it is known better than from the port's own speed. ``untrusted`` are ports whose
    DSCP is not believed. Without ``probe`` queues need no proof. ``answer_seconds`` is how long a switch may take to
    answer; ``retry_seconds`` how long until a switch that is not ready is looked at again; ``audit_seconds`` how often
    the rules that a switch holds are compared with those that it should; ``queue_seconds`` how often the same is done
    for its ports' queues.
    """

    classes: int = MAX_CLASSES
    queues: Literal["managed", "existing"] = "managed"
    ovsdb: str | Mapping[int, str] = "unix:/var/run/openvswitch/db.sock"
    job_floor: float = 0.01
    other_floor: float = 0.10
    gate_seconds: int = 15
    probe: bool = True
    rates_bps: Mapping[tuple[int, int], float] = field(default_factory=lambda: MappingProxyType({}))
    links: tuple[Link, ...] = ()
    untrusted: frozenset[tuple[int, int]] = frozenset()
    answer_seconds: float = 2.0
    retry_seconds: float = 3.0
    audit_seconds: float = 0.5
    queue_seconds: float = 2.0


@dataclass(frozen=True, slots=True)
class SwitchChange:
    """What one switch made of a change: messages sent, seconds until its barrier's answer, and what it refused."""

    dpid: int
    flow_mods: int = 0
    seconds: float = 0.0
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a set of rules.

    ``flow_mods`` counts the rules added, changed or deleted. A switch with ``errors`` holds what it held before.
    """

    flow_mods: int
    errors: tuple[str, ...] = ()
    per_switch: tuple[SwitchChange, ...] = ()


@dataclass(frozen=True, slots=True)
class PortProof:
    """What the probe found at one port: packets counted a queue, and why the port is not ordered (None: proven)."""

    port: int
    name: str
    packets: Mapping[int, int]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """A switch as the operator sees it. ``reason`` says why it is not ready; ``rules`` is how many it holds.

    ``problems`` are what an operator should know of a switch that is ready: ports that are not ordered, and what
    somebody else changed within the last minute. ``repairs`` is how often such a change was undone.
    """

    dpid: int
    connected: bool
    ready: bool
    reason: str | None
    rules: int
    bundles: bool | None
    ports: tuple[PortProof, ...] = ()
    problems: tuple[str, ...] = ()
    repairs: int = 0
