"""The messages on the controller's own state, and on errors."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.base import Message, Name


class Problem(Message):
    """An error: a problem document (RFC 9457). ``errors`` names each field at fault, ``instance`` the path."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: Annotated[tuple[dict[str, str], ...], Field(strict=False)] = ()


class PortState(Message):
    """The probe's result at one port of a switch: packets counted by queue, and what is wrong (None: proven)."""

    port: int
    name: str
    packets: dict[str, int]
    problem: str | None


class SwitchState(Message):
    """A switch: ``dpid`` as 16 hexadecimal digits; ``reason`` says why it is not ready.

    ``ports`` are those that are up; a port with a ``problem`` is not ordered. No ports: their queues were not probed.
    ``problems``: what an operator should know although the switch is ready. ``repairs`` counts how often another
    program had changed its rules or queues, and the change was undone.
    """

    dpid: str
    connected: bool
    ready: bool
    reason: str | None
    rules: int
    bundles: bool | None
    ports: Annotated[tuple[PortState, ...], Field(strict=False)]
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    repairs: int = 0


class HostState(Message):
    """A host of the settings, whether its agent's lease runs, and whether the agent marks acknowledgements now."""

    name: Name
    address: str | None
    alive: bool
    marks_acknowledgements: bool = False


class LatencyState(Message):
    """Exact quantiles of the latest ``count`` samples (10,000 at most), in seconds; None without any."""

    count: int
    p50_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None


class Status(Message):
    """Body of ``GET /v1/status``: the controller's own state.

    ``plans`` counts the plans made; ``plan_causes`` counts their triggers, of which several may share a plan.
    ``report_to_rule`` counts from the arrival of a host's report that triggered a plan to the barrier reply, for plans
    that changed rules; ``change_to_rule`` does for all other calls that trigger one (registrations, removals, stages,
    settings); ``report_to_plan`` is of both, rules changed or not. The triggers of a failed plan are counted when a
    later one is in force. ``bytes_by_class`` is by switch and class ("other": all other traffic), and only rises.
    ``mode`` is PlanView's; ``flow_rules``: what the jobs' flows need at one switch, at most, in the plan in force,
    beside the ``table_budget``.
    """

    policy: str
    epoch: int
    plan_age_seconds: float | None
    jobs: int
    journal: Literal["memory", "written", "degraded"]
    problems: Annotated[tuple[str, ...], Field(strict=False)]
    plans: int
    plan_causes: dict[str, int]
    plan_errors: int
    flow_mods: int
    gate_renewals: int
    report_to_rule: LatencyState
    change_to_rule: LatencyState
    report_to_plan: LatencyState
    bytes_by_class: dict[str, dict[str, int]]
    hosts: Annotated[tuple[HostState, ...], Field(strict=False)]
    switches: Annotated[tuple[SwitchState, ...], Field(strict=False)]
    mode: Literal["classified", "marked"] = "classified"
    flow_rules: int = 0
    table_budget: int = 0


class Readiness(Message):
    """Body of ``GET /readyz`` and ``GET /healthz``: degraded: ready, but an operator should look."""

    status: Literal["alive", "ready", "degraded"]
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
