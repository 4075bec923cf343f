"""The REST messages, version 1: the one contract between hosts, operators and the controller.

Every body that crosses the wire is a model here. Unknown fields, NaN, infinities and numbers outside their
range are refused by the model itself, so that nothing behind it has to check again. SI units: seconds, bytes,
bit/s. Times are seconds since the Unix epoch.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from controller.model import Role

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
Name = Annotated[str, StringConstraints(pattern=NAME_PATTERN)]
"""A job's, host's or stage's id: 1 to 63 letters, digits, dots, dashes, underscores."""

PRINTABLE_PATTERN = r"^[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]*$"
"""No control characters, and none that turn the direction of the text: such words end up on terminals and in logs."""

TcpPort = Annotated[int, Field(ge=1, le=65535)]
MAX_BYTES = 1e18
Bytes = Annotated[float, Field(ge=0, le=MAX_BYTES)]
Seconds = Annotated[float, Field(ge=0, le=1e12)]
Iterations = Annotated[float, Field(ge=0, le=1e15)]
Positive = Annotated[float, Field(ge=1e-9, le=1e9)]
MAX_METRIC = 1e30
MetricValue = Annotated[float, Field(ge=-MAX_METRIC, le=MAX_METRIC)]

MAX_BODY_BYTES = 4 * 2**20
"""A larger request body is refused before it is read (413)."""

MAX_FLOWS = 4096
"""Connections that one batch may name, as many as a job may have."""

MAX_POINTS = 10_000
"""Points of progress that one batch may bring, over all its jobs: they are merged in one go."""


class Message(BaseModel):
    """Base of every body: immutable, no unknown fields, no NaN or infinity, no silent type changes."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, strict=True)


class MetricSpec(Message):
    """What a job's progress is measured by."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=PRINTABLE_PATTERN)] = "accuracy"
    direction: Literal["max", "min"] = "max"


class TaskSpec(Message):
    """One process of a job and the TCP port that it listens on; all traffic to and from that port is the job's."""

    role: Annotated[Role, Field(strict=False)]
    host: Name
    port: TcpPort | None = None


class FlowSpec(Message):
    """One direction of TCP traffic between two hosts; at least one port must be given."""

    src: Name
    dst: Name
    src_port: TcpPort | None = None
    dst_port: TcpPort | None = None

    @model_validator(mode="after")
    def _has_a_port(self) -> FlowSpec:
        if self.src_port is None and self.dst_port is None:
            raise ValueError("a flow needs src_port or dst_port")
        if self.src == self.dst:
            raise ValueError("a flow's source and destination must differ")
        return self


class DemandSpec(Message):
    """Bytes that one iteration sends from one host to another."""

    src: Name
    dst: Name
    bytes: Bytes

    @model_validator(mode="after")
    def _crosses_the_network(self) -> DemandSpec:
        if self.src == self.dst:
            raise ValueError("a demand's source and destination must differ")
        return self


class JobSpec(Message):
    """Body of ``PUT /v1/jobs/{id}``: what a job says of itself.

    ``arrival``: when it was submitted (None: now). ``iterations``: the length of the whole run, where known.
    ``compute_seconds``: of one iteration, without communication.
    """

    tasks: Annotated[tuple[TaskSpec, ...], Field(max_length=4096, strict=False)] = ()
    flows: Annotated[tuple[FlowSpec, ...], Field(max_length=4096, strict=False)] = ()
    demand: Annotated[tuple[DemandSpec, ...], Field(max_length=65536, strict=False)] = ()
    metric: MetricSpec = MetricSpec()
    iterations: Annotated[float, Field(ge=1e-9, le=1e15)] | None = None
    compute_seconds: Seconds = 0.0
    weight: Positive = 1.0
    arrival: Seconds | None = None
    stage: Name | None = None
    model: Annotated[str, StringConstraints(max_length=127, pattern=PRINTABLE_PATTERN)] | None = None


class JobState(Message):
    """A job as ``GET /v1/jobs/{id}`` shows it: its spec and what is known of it now."""

    id: Name
    spec: JobSpec
    arrival: float
    state: Literal["waiting", "running", "ended", "lost"]
    iterations_done: float
    last_metric: float | None
    last_report: float | None
    service_class: int | None


class JobList(Message):
    """Body of ``GET /v1/jobs``."""

    jobs: Annotated[tuple[JobState, ...], Field(strict=False)]


class StageSpec(Message):
    """Body of ``PUT /v1/stages/{id}``: the jobs of one hyper-parameter rung."""

    jobs: Annotated[tuple[Name, ...], Field(max_length=4096, strict=False)]


class ProgressPoint(Message):
    """Iterations done at a time, and the metric then, if it was measured."""

    iteration: Iterations
    time: Seconds
    metric: MetricValue | None = None


class JobReport(Message):
    """What one host knows anew of one job.

    ``sent_bytes`` is cumulative, of this host, since its agent began to count. ``counter`` tells the counts of a
    session apart: another number is another count, which began at 0. ``followed``: the agent follows the job, and will
    tell its end; one that only counts the job's bytes will not.

    ``as_of``: when the host knew it, by its own clock: when the job ended, or the bytes were counted (None: when the
    batch was sent). By it a late end is told apart from the end of the job's next run.
    """

    job: Name
    points: Annotated[tuple[ProgressPoint, ...], Field(max_length=MAX_POINTS, strict=False)] = ()
    sent_bytes: Bytes | None = None
    counter: Annotated[int, Field(ge=0, le=2**62)] = 0
    followed: bool = False
    ended: bool = False
    as_of: Seconds | None = None


class FlowSeen(Message):
    """A connection of a job that the host found (IPv4, TCP)."""

    job: Name
    flow: FlowSpec


class HostReport(Message):
    """Body of ``POST /v1/hosts/{host}/reports``: one batch of a host.

    ``session`` names one run of the agent; ``seq`` counts its batches from 1. A batch that was already taken is
    ignored, one that comes late is merged; both are answered like any other. An empty batch renews the lease.
    """

    session: Name
    seq: Annotated[int, Field(ge=1, le=2**62)]
    sent_at: Seconds
    jobs: Annotated[tuple[JobReport, ...], Field(max_length=4096, strict=False)] = ()
    flows: Annotated[tuple[FlowSeen, ...], Field(max_length=MAX_FLOWS, strict=False)] = ()

    @model_validator(mode="after")
    def _is_taken_at_once(self) -> HostReport:
        if (count := sum(len(part.points) for part in self.jobs)) > MAX_POINTS:
            raise ValueError(f"a batch has at most {MAX_POINTS} points of progress, this one {count}; send several")
        return self


class ReportRefusal(Message):
    """One part of a batch that was not taken, and why; the rest was."""

    job: str
    reason: str


class Threshold(Message):
    """A value of a job's metric, and which way the metric crosses it."""

    metric: MetricValue
    direction: Literal["max", "min"] = "max"

    def is_reached(self, metric: float | None) -> bool:
        """Whether a metric is there; None (not measured) is not."""
        if metric is None:
            return False
        return metric >= self.metric if self.direction == "max" else metric <= self.metric


class ReportAnswer(Message):
    """Answer to a report: whether it was new, what was refused, and how long the host's lease runs. Of a part in
    ``left_out`` something was not believed, and will not be; the rest was taken.

    What jobs get on is planned with once in ``period_seconds`` and may be told as seldom; ``urgent`` has, of the jobs
    that were reported, the value whose crossing should be told at once. ``held``, in the answer to a session's first
    batch, are the jobs that go on here and that an agent of this host has followed before: of those that ended while
    there was no agent, nobody has told the end.
    """

    status: Literal["taken", "duplicate"]
    refused: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    left_out: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    lease_seconds: float
    period_seconds: float
    urgent: dict[Name, Threshold] = Field(default_factory=dict)
    held: Annotated[tuple[Name, ...], Field(strict=False)] = ()


class Mark(Message):
    """Traffic of a host's job to be marked: outgoing TCP packets that match get the DSCP of the job's class.

    ``remote`` is an IPv4 address; a part of None matches anything.
    """

    job: Name
    service_class: Annotated[int, Field(ge=0, le=6)]
    dscp: Annotated[int, Field(ge=0, le=63)]
    local_port: TcpPort | None = None
    remote: str | None = None
    remote_port: TcpPort | None = None


class HostPlan(Message):
    """Body of ``GET /v1/hosts/{host}/plan``: the host's marking plan.

    ``class_dscp[k]`` is the DSCP of class k; all other traffic has DSCP 0. ``class_floor`` and ``other_floor`` are
    the shares of the link that each job class and all other traffic keep. ``egress_bps`` is the host's link.
    """

    host: Name
    epoch: int
    policy: str
    mode: Literal["classified", "marked"]
    class_dscp: Annotated[tuple[int, ...], Field(strict=False)]
    class_floor: float
    other_floor: float
    egress_bps: float
    marks: Annotated[tuple[Mark, ...], Field(strict=False)] = ()


class PlanView(Message):
    """Body of ``GET /v1/plan``: the plan in force, or what another policy would do (``?policy=NAME``).

    ``errors``: why a newer plan is not in force: what switches said to it. They took all of the plan in force, but
    ``applied`` is false as long as a newer one, which others may have taken, is refused. ``inversions``: pairs of jobs
    that meet at a port and that the classes do not keep apart in their order, because there are too few.
    """

    policy: str
    options: dict[str, object]
    applied: bool
    epoch: int
    age_seconds: float
    order: Annotated[tuple[tuple[str, ...], ...], Field(strict=False)]
    classes: dict[str, int]
    reasons: dict[str, str]
    objective_seconds: float
    lower_bound_seconds: float | None
    inversions: int = 0
    errors: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Explanation(Message):
    """Body of ``GET /v1/jobs/{id}/explain``: why the job has its class, with the numbers."""

    job: Name
    policy: str
    service_class: int
    position: int
    jobs_before: Annotated[tuple[str, ...], Field(strict=False)]
    reason: str
    bottleneck_port: str | None
    bottleneck_seconds_per_iteration: float
    iterations_done: float
    iterations_left: float


class Settings(Message):
    """Body of ``GET`` and ``PATCH /v1/settings``: what can change at run time; absent parts stay as they are."""

    policy: str | None = None
    policy_options: dict[str, object] | None = None
    period_seconds: Annotated[float, Field(ge=0.1, le=3600)] | None = None


class Problem(Message):
    """An error: a problem document (RFC 9457). ``errors`` names each field at fault."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    instance: str | None = None
    errors: Annotated[tuple[dict[str, str], ...], Field(strict=False)] = ()


class StageState(Message):
    """A stage as the API shows it: the jobs that are in it now."""

    id: Name
    jobs: Annotated[tuple[str, ...], Field(strict=False)]


class PortState(Message):
    """What the probe found at one port of a switch: packets counted a queue, and what is wrong (None: proven)."""

    port: int
    name: str
    packets: dict[str, int]
    problem: str | None


class SwitchState(Message):
    """A switch: ``dpid`` as 16 hexadecimal digits; ``reason`` says why it is not ready."""

    dpid: str
    connected: bool
    ready: bool
    reason: str | None
    rules: int
    bundles: bool | None
    ports: Annotated[tuple[PortState, ...], Field(strict=False)]


class HostState(Message):
    """A host of the settings, and whether its agent's lease runs."""

    name: Name
    address: str | None
    alive: bool


class LatencyState(Message):
    """Exact quantiles of the latest ``count`` samples (10,000 at most), in seconds; None without any."""

    count: int
    p50_seconds: float | None
    p99_seconds: float | None
    max_seconds: float | None


class Status(Message):
    """Body of ``GET /v1/status``: the controller's own state.

    ``plans``: how many were made; ``plan_causes``: what for, where several causes may share a plan. ``report_to_rule``
    counts from the arrival of a host's report that triggered a plan to the barrier reply, for plans that changed rules;
    ``change_to_rule`` does for all other calls that trigger one (registrations, removals, stages, settings);
    ``report_to_plan`` is of both, rules changed or not. ``bytes_by_class`` is by switch and class ("other": all other
    traffic).
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


class Readiness(Message):
    """Body of ``GET /readyz`` and ``GET /healthz``: degraded: ready, but an operator should look."""

    status: Literal["alive", "ready", "degraded"]
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
