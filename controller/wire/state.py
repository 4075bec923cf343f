"""The messages on the controller's own state, and on errors."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from controller.wire.base import Message, Name


class Problem(Message):
    """An error: a problem document (RFC 9457)."""

    type: str = "about:blank"
    """The kind of problem. It is always about:blank: the status says it all."""
    title: str
    """The name of the status."""
    status: int
    """The HTTP status."""
    detail: str
    """What is wrong, and what would be right."""
    instance: str | None = None
    """The path of the request."""
    errors: Annotated[tuple[dict[str, str], ...], Field(strict=False)] = ()
    """Each field that is at fault, with what is wrong (detail). Of a file also its name and the line."""


class CallerView(Message):
    """Body of ``GET /v1/caller``: who calls."""

    name: str
    """The name of the token, of the certificate, of the person at the identity provider, or of the host."""
    role: Literal["operator", "viewer", "tenant", "host", "enrol"]
    """The role of the caller. Where no token is set, everybody is an operator."""
    calls: Annotated[tuple[str, ...], Field(strict=False)]
    """The calls that this role may make, each a method and a path. Tenants and hosts may make a call only for what is
    their own."""


class PortState(Message):
    """The result of the probe at one port of a switch."""

    port: int
    """The OpenFlow port number."""
    name: str
    """The name of the port."""
    packets: dict[str, int]
    """The test packets that were counted, by queue."""
    problem: str | None
    """What is wrong. null: the queues are proven."""


class SwitchState(Message):
    """A switch."""

    dpid: str
    """The datapath id, 16 hexadecimal digits."""
    connected: bool
    """Whether the switch is connected now."""
    ready: bool
    """Whether the switch is used."""
    reason: str | None
    """Why the switch is not ready. null: it is."""
    rules: int
    """How many rules of the controller the switch holds."""
    bundles: bool | None
    """Whether the switch takes a change of rules as a whole (OpenFlow bundles). null: not known yet."""
    ports: Annotated[tuple[PortState, ...], Field(strict=False)]
    """The ports that are up. A port with a problem is not ordered. No ports: their queues were not probed."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """What an operator should know although the switch is ready."""
    repairs: int = 0
    """How often another program had changed the rules or queues of the switch, and the change was undone."""


class HostState(Message):
    """A host of the settings."""

    name: Name
    """The name of the host."""
    address: str | None
    """The first address of the host, of IPv4 where it has one. null: none is known."""
    alive: bool
    """Whether the lease of its agent runs."""
    marks_acknowledgements: bool = False
    """Whether its agent marks acknowledgements now."""
    tunnel_ports: Annotated[tuple[int, ...], Field(strict=False)] = ()
    """The UDP ports of tunnels whose outer headers its agent marks now."""
    marks: bool | None = None
    """Whether its packet filter marks packets of jobs now. null: that is not known."""
    clock_offset_seconds: float | None = None
    """How far the host's clock is behind the controller's, in seconds, with the time that its fastest report took.
    Below 0: it is ahead. null: it has not reported."""


class LatencyState(Message):
    """Exact quantiles of the latest samples, in seconds. Without a sample they are null."""

    count: int
    """How many samples there are, at most 10,000."""
    p50_seconds: float | None
    """The median."""
    p99_seconds: float | None
    """The 99th percentile."""
    max_seconds: float | None
    """The maximum."""


class Status(Message):
    """Body of ``GET /v1/status``: the controller's own state."""

    policy: str
    """The policy that orders the jobs."""
    epoch: int
    """The number of the plan in force. It rises when the class of a job or the policy changes."""
    plan_age_seconds: float | None
    """The seconds since the plan in force was made. null: there is none yet."""
    jobs: int
    """How many jobs are in the plan."""
    journal: Literal["memory", "written", "degraded"]
    """Where the state is kept: in memory alone, written to the journal, or degraded: in memory until the journal can be
    written again."""
    problems: Annotated[tuple[str, ...], Field(strict=False)]
    """What an operator should look at."""
    plans: int
    """How many plans were made."""
    plan_causes: dict[str, int]
    """The triggers of plans, by cause. Several triggers may share a plan. Those of a failed plan count when a later one
    is in force."""
    plan_errors: int
    """How many plans could not be made or applied."""
    flow_mods: int
    """How many changes of rules were sent to switches."""
    gate_renewals: int
    """How many renewals of the switches' gates were sent."""
    report_to_rule: LatencyState
    """The time from the arrival of a host's report that triggered a plan to the switch's reply, of plans that changed
    rules."""
    change_to_rule: LatencyState
    """The same for all other calls that trigger a plan: registrations, removals, stages, settings."""
    report_to_plan: LatencyState
    """The time from a trigger of either kind to the plan in force, whether rules changed or not."""
    bytes_by_class: dict[str, dict[str, int]]
    """The bytes by switch and class (other: all other traffic). They only rise."""
    hosts: Annotated[tuple[HostState, ...], Field(strict=False)]
    """The hosts of the settings."""
    switches: Annotated[tuple[SwitchState, ...], Field(strict=False)]
    """The switches that have connected."""
    mode: Literal["classified", "marked", "dscp"] = "classified"
    """How switches distinguish jobs now: by addresses and ports, by marks of classes alone, or by a DSCP of each
    job."""
    flow_rules: int = 0
    """The rules that the flows of jobs need in the plan in force, at the switch that needs most."""
    table_budget: int = 0
    """The rules that a switch may hold for the flows of jobs."""
    settings_sha256: str | None = None
    """The SHA-256 of the settings file in force, in hexadecimal. null: the controller runs without one."""
    settings_loaded_at: float | None = None
    """When the settings in force were read, in seconds since 1970-01-01 UTC."""
    paused: bool = False
    """Whether an operator has paused: plans are made, and nothing is enforced."""
    not_ready: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Why nothing of what is to enforce the order does so, as GET /readyz says. Empty: the controller is ready."""
    policies: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """The policies that can be chosen, in alphabetical order."""
    enforce: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Who enforces the order by the settings: switches, hosts. Empty: the controller only observes."""


class SettingChange(Message):
    """A setting that a reload has changed, or would change."""

    field: str
    """The field in the settings file, such as hosts.node1.ingress_bps."""
    before: Any = None
    """The value before, as in JSON. null: it was not set. Of a secret: that it was set."""
    after: Any = None
    """The value after. null: it is not set. Of a secret: that it is set or has changed."""


class ReloadAnswer(Message):
    """Body of the answer to ``POST /v1/reload``."""

    sha256: str
    """The SHA-256 of the settings file in force, in hexadecimal."""
    loaded_at: float
    """When it was read, in seconds since 1970-01-01 UTC."""
    changed: Annotated[tuple[SettingChange, ...], Field(strict=False)]
    """What has changed."""
    waiting: Annotated[tuple[SettingChange, ...], Field(strict=False)]
    """The settings of the file that change only when the controller starts again."""


class Readiness(Message):
    """Body of ``GET /readyz`` and ``GET /healthz``."""

    status: Literal["alive", "ready", "degraded", "observing"]
    """alive: the process answers. ready: the network is ordered. degraded: ready, but an operator should look.
    observing: plans are made, and by the settings nothing is enforced."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """What is wrong, without the causes."""
