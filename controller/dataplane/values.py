"""The settings and the results of the dataplane, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Literal

from controller.code_points import POOL_2, CodePoints
from controller.model import MAX_CLASSES
from controller.rules.fabric import Link

CHANGEABLE = frozenset(
    {
        "job_floor",
        "other_floor",
        "gate_seconds",
        "probe",
        "rates_bps",
        "links",
        "untrusted",
        "control_ports",
        "control_share",
    }
)
"""Names the settings that may change while switches are connected."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How the dataplane treats its switches.

    ``classes`` is K, the number of job classes; a port has one queue more. ``queue_numbers`` are the queues of the
    classes; empty: in order from 1. ``code_points`` are the DSCPs of classes, by which queues are proven. ``ovsdb`` is
    the address of the switches' database, or a mapping from datapath id to address. ``job_floor`` and ``other_floor``
    are the shares of a link that each class and all other traffic keep. ``rates_bps`` is the rate of a port in bit/s by
    (datapath id, port number), where it is better known than from the port's own speed. ``untrusted`` are the ports, as
    (datapath id, port number), whose DSCP is cleared. ``control_ports`` are ports, in the same form, whose control
    traffic goes first, up to ``control_share`` of their rate. Without ``probe`` queues need no proof.
    ``answer_seconds`` is how long a switch may take to answer. ``retry_seconds`` is the time until a switch that is not
    ready is looked at again. ``audit_seconds`` is the time between two looks at a switch's rules, ``queue_seconds``
    between two looks at its queues. Where it ``only_observes``, switches get no rules and no queues, and are not
    probed.
    """

    classes: int = MAX_CLASSES
    queue_numbers: tuple[int, ...] = ()
    code_points: CodePoints = POOL_2
    queues: Literal["managed", "existing"] = "managed"
    ovsdb: str | Mapping[int, str] = "unix:/var/run/openvswitch/db.sock"
    job_floor: float = 0.01
    other_floor: float = 0.10
    gate_seconds: int = 15
    probe: bool = True
    rates_bps: Mapping[tuple[int, int], float] = field(default_factory=lambda: MappingProxyType({}))
    links: tuple[Link, ...] = ()
    untrusted: frozenset[tuple[int, int]] = frozenset()
    control_ports: frozenset[tuple[int, int]] = frozenset()
    control_share: float = 0.01
    answer_seconds: float = 2.0
    retry_seconds: float = 3.0
    audit_seconds: float = 0.5
    queue_seconds: float = 2.0
    only_observes: bool = False

    def fixed_differences(self, other: Settings) -> tuple[str, ...]:
        """Returns the names of the settings that differ from ``other``'s and cannot change in a running dataplane."""
        names = (each.name for each in fields(self) if each.name not in CHANGEABLE)
        return tuple(name for name in names if getattr(self, name) != getattr(other, name))


@dataclass(frozen=True, slots=True)
class SwitchChange:
    """The result of a change of one switch: messages sent, seconds until the barrier reply, and refusals."""

    dpid: int
    flow_mods: int = 0
    seconds: float = 0.0
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of ``Dataplane.apply``.

    ``flow_mods`` counts the rules added, changed or deleted. A switch with ``errors`` holds what it held before.
    """

    flow_mods: int
    errors: tuple[str, ...] = ()
    per_switch: tuple[SwitchChange, ...] = ()


@dataclass(frozen=True, slots=True)
class PortProof:
    """The probe's result for one port: packets by queue, and the problem (None: the queues are proven)."""

    port: int
    name: str
    packets: Mapping[int, int]
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class SwitchStatus:
    """A switch as the operator sees it. ``reason`` says why it is not ready; ``rules`` is how many it holds.

    ``problems`` are those of a switch that is ready: ports whose queues are not proven, and changes by somebody else
    within the last minute. ``repairs`` is how often such a change was undone.
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
