"""The messages on jobs and stages: their specs, and how the API shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from controller.model import Role
from controller.wire.base import (
    Bytes,
    Label,
    Message,
    MetricValue,
    Name,
    Positive,
    RunLength,
    Seconds,
    TcpPort,
    UserName,
)
from controller.wire.metric import MetricSpec
from controller.wire.parts import PartState


class TaskSpec(Message):
    """One process of a job, and the TCP port that it listens on. All traffic to and from that port is the job's."""

    role: Annotated[Role, Field(strict=False)]
    """What the process does: ps is a parameter server, worker talks to parameter servers, peer takes part in an
    all-reduce."""
    host: Name
    """The host that the process runs on."""
    port: TcpPort | None = None
    """The TCP port that the process listens on."""


class FlowSpec(Message):
    """One direction of TCP traffic between two hosts; at least one port must be given."""

    src: Name
    """The host that sends."""
    dst: Name
    """The host that receives. It differs from src."""
    src_port: TcpPort | None = None
    """The TCP port of the sender. Without it: any port."""
    dst_port: TcpPort | None = None
    """The TCP port of the receiver. Without it: any port."""

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
    """The host that sends."""
    dst: Name
    """The host that receives. It differs from src."""
    bytes: Bytes
    """The bytes that one iteration sends from src to dst."""

    @model_validator(mode="after")
    def _crosses_the_network(self) -> DemandSpec:
        if self.src == self.dst:
            raise ValueError("a demand's source and destination must differ")
        return self


class JobSpec(Message):
    """Body of ``PUT /v1/jobs/{id}``: what a job declares."""

    tasks: Annotated[tuple[TaskSpec, ...], Field(max_length=4096, strict=False)] = ()
    """The processes of the job."""
    flows: Annotated[tuple[FlowSpec, ...], Field(max_length=4096, strict=False)] = ()
    """TCP traffic of the job that no task's port describes."""
    demand: Annotated[tuple[DemandSpec, ...], Field(max_length=65536, strict=False)] = ()
    """The bytes that one iteration sends between hosts. Without it the demand is measured."""
    metric: MetricSpec = MetricSpec()
    """The metric that the job reports."""
    target: MetricValue | None = None
    """A value of the metric that the user calls done: t90 is then the time to this value. Without it: the value that
    closes 90 % of the gap between the start of the metric and its converged value."""
    iterations: RunLength | None = None
    """The length of the whole run in iterations, where it is known."""
    compute_seconds: Seconds = 0.0
    """The seconds of one iteration without communication."""
    weight: Positive = 1.0
    """How much the job counts against others. A host's own token may give at most 1."""
    arrival: Seconds | None = None
    """When the job was submitted, in seconds since the Unix epoch. Without it: now."""
    stage: Name | None = None
    """The hyper-parameter stage that the job belongs to."""
    model: Label | None = None
    """The name of the trained model, for people."""
    family: Label | None = None
    """The name under which runs of the same training are kept, for what they say of the next one. Without it: model.
    An empty name: the job has no family."""
    user: UserName | None = None
    """The Unix user whose job it is. A family belongs to its user. Without it: to the host whose token registered the
    job, or to the operators."""


class PredictedTarget(Message):
    """When a job is expected to reach a target."""

    metric: float | None
    """The value of the metric at the target. null: it is not known."""
    iteration: float | None
    """The iteration, from the start of the job, as a median. null: it is not known."""
    low: float | None
    """The iteration before which it comes with a chance of 10 %."""
    high: float | None
    """The iteration before which it comes with a chance of 90 %."""


class JobState(Message):
    """A job as ``GET /v1/jobs/{id}`` shows it: its spec, and what is known of it now."""

    id: Name
    """The name of the job."""
    spec: JobSpec
    """What the job declares."""
    arrival: float
    """When the job arrived, in seconds since the Unix epoch."""
    state: Literal["waiting", "running", "ended", "lost"]
    """waiting: registered, without a report yet. running: reported. ended: it has ended. lost: no agent has reported it
    for lease_seconds."""
    iterations_done: float
    """How many iterations the job has done."""
    last_metric: float | None
    """The latest value of its metric, if it reported one."""
    last_report: float | None
    """When it was reported last, in seconds since the Unix epoch."""
    diverged: bool = False
    """Whether this run has reported that it diverged: that its metric or its loss is no finite number."""
    service_class: int | None
    """Its class in the plan in force. Class 0 is served first. null: it is not in the plan."""
    connections: int = 0
    """How many live connections of the job the agents have found."""
    measured_demand: Annotated[tuple[DemandSpec, ...], Field(strict=False)] = ()
    """The bytes of one iteration between hosts, as measured."""
    measured_iterations: float = 0.0
    """Over how many of the latest iterations the demand was measured."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Where the measured demand differs much from the declared one."""
    targets: dict[str, PredictedTarget] = Field(default_factory=dict)
    """The targets that the policy predicts, as in the event job."""
    parts: dict[Name, PartState] = Field(default_factory=dict)
    """What each host knows of the job, of a job that agents have found. Empty: it was registered whole."""
    missing: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    """The hosts that the launcher names and that have no part: is there an agent?"""


class JobList(Message):
    """Body of ``GET /v1/jobs``."""

    jobs: Annotated[tuple[JobState, ...], Field(strict=False)]
    """All jobs, also those that ended lately."""


class StageSpec(Message):
    """Body of ``PUT /v1/stages/{id}``: the jobs of one hyper-parameter rung."""

    jobs: Annotated[tuple[Name, ...], Field(max_length=4096, strict=False)]
    """The names of the jobs that are in the stage."""


class StageState(Message):
    """A stage as the API shows it: the jobs that are in it now."""

    id: Name
    """The name of the stage."""
    jobs: Annotated[tuple[str, ...], Field(strict=False)]
    """The names of the jobs that are in it now."""
