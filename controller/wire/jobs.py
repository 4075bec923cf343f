"""The messages on jobs and stages: their specs, and how the API shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from controller.model import ROCEV2_PORT, WITH_PORTS, Role, TrafficProtocol
from controller.wire.addresses import EndpointName
from controller.wire.base import (
    Bytes,
    Label,
    Message,
    MetricValue,
    Name,
    Positive,
    Rungs,
    RunLength,
    Seconds,
    TcpPort,
    Unit,
    UserName,
)
from controller.wire.metric import MetricSpec
from controller.wire.parts import PartState


def _check_ports(protocol: TrafficProtocol, receiver: int | None, sender: int | None = None) -> None:
    """Raise ValueError where ports do not fit a protocol."""
    if protocol not in WITH_PORTS and (receiver, sender) != (None, None):
        raise ValueError(f"{protocol} has no port of its own: leave the port out, or name tcp or udp as protocol")
    if protocol == "udp" and receiver == ROCEV2_PORT:
        raise ValueError(f"UDP port {ROCEV2_PORT} is that of RoCEv2: name rocev2 as protocol, and no port")


class TaskSpec(Message):
    """One process of a job, and the port that it listens on. All traffic to and from that port is the job's.

    With rocev2 or any there is no port: such traffic between the process's host and those that it communicates with is
    the job's.
    """

    role: Annotated[Role, Field(strict=False)]
    """What the process does: ps is a parameter server, worker talks to parameter servers, peer takes part in an
    all-reduce."""
    host: Name
    """The host that the process runs on."""
    port: TcpPort | None = None
    """The TCP or UDP port that the process listens on."""
    protocol: TrafficProtocol = "tcp"
    """tcp and udp: what the port is of; udp needs one. rocev2: UDP to port 4791, as network interfaces with RDMA send
    it. any: all packets of IP. For rocev2 and any see FlowSpec."""

    @model_validator(mode="after")
    def _has_its_port(self) -> TaskSpec:
        _check_ports(self.protocol, self.port)
        if self.protocol == "udp" and self.port is None:
            raise ValueError("a task with protocol udp needs port")
        return self


class ConnectionSpec(Message):
    """One direction of TCP traffic between two hosts; at least one port must be given."""

    src: Name
    """The host that sends."""
    dst: Name
    """The host that receives. It differs from src."""
    src_port: TcpPort | None = None
    """The port of the sender. Without it: any port."""
    dst_port: TcpPort | None = None
    """The port of the receiver. Without it: any port."""

    @model_validator(mode="after")
    def _has_two_ends(self) -> ConnectionSpec:
        if self._needs_port and self.src_port is None and self.dst_port is None:
            raise ValueError("a flow needs src_port or dst_port")
        if self.src == self.dst:
            raise ValueError("a flow's source and destination must differ")
        return self

    @property
    def _needs_port(self) -> bool:
        return True


class FlowSpec(ConnectionSpec):
    """One direction of traffic between two hosts. TCP and UDP need a port at least; rocev2 and any have none.

    Where several jobs declare rocev2, or any, from the same host to the same other one, switches cannot distinguish
    them by flows.
    """

    protocol: TrafficProtocol = "tcp"
    """What the packets are. rocev2: UDP to port 4791, as network interfaces with RDMA send it. any: all packets of IP
    from src to dst that no other flow describes."""

    @model_validator(mode="after")
    def _has_its_ports(self) -> FlowSpec:
        _check_ports(self.protocol, self.dst_port, self.src_port)
        return self

    @property
    def _needs_port(self) -> bool:
        return self.protocol in WITH_PORTS


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


class MeasuredDemand(Message):
    """Bytes that one iteration sends from one host to another, as measured."""

    src: EndpointName
    """The host that sends, or HOST/INTERFACE where it has several interfaces in the network."""
    dst: EndpointName
    """The host that receives, or HOST/INTERFACE."""
    bytes: Bytes
    """The bytes that one iteration sends from src to dst."""


class PredictedIteration(Message):
    """How long one iteration was predicted to take before the job ran, as ``trainyard predict`` does."""

    seconds: Positive
    """The predicted seconds of an iteration, communication included."""
    low: Seconds
    """The seconds that it takes at least, with a chance of 90 %."""
    high: Seconds
    """The seconds that it takes at most, with a chance of 90 %."""

    @model_validator(mode="after")
    def _is_in_order(self) -> PredictedIteration:
        if not self.low <= self.seconds <= self.high:
            raise ValueError("low, seconds and high must be in this order")
        return self


class JobSpec(Message):
    """Body of ``PUT /v1/jobs/{id}``: what a job declares."""

    tasks: Annotated[tuple[TaskSpec, ...], Field(max_length=4096, strict=False)] = ()
    """The processes of the job."""
    flows: Annotated[tuple[FlowSpec, ...], Field(max_length=4096, strict=False)] = ()
    """Traffic of the job that no task describes."""
    demand: Annotated[tuple[DemandSpec, ...], Field(max_length=65536, strict=False)] = ()
    """The bytes that one iteration sends between hosts. Without it the demand is measured."""
    metric: MetricSpec = MetricSpec()
    """The metric that the job reports."""
    target: MetricValue | None = None
    """A value of the metric that the user calls done: t90 is then the time to this value. Without it: the value that
    closes 90 % of the gap between the start of the metric and its converged value."""
    iterations: RunLength | None = None
    """The length of the whole run in iterations, where it is known."""
    unit: Unit = "iteration"
    """What progress and iterations count. epoch: the job's output tells no steps. demand and compute_seconds are of one
    iteration in any case."""
    compute_seconds: Seconds = 0.0
    """The seconds of one iteration without communication."""
    predicted: PredictedIteration | None = None
    """How long one iteration was predicted to take, which explain compares with what is measured."""
    weight: Positive = 1.0
    """How much the job counts against others. A host's own token may give at most 1."""
    arrival: Seconds | None = None
    """When the job was submitted, in seconds since the Unix epoch. Without it: now."""
    stage: Name | None = None
    """The hyper-parameter stage that the job belongs to."""
    rungs_left: Rungs | None = None
    """How many rungs of its study follow this stage, where that is known. Its last rung has 0."""
    model: Label | None = None
    """The name of the trained model, for people."""
    family: Label | None = None
    """The name under which runs of the same training are kept, for what they say of the next one. Without it: model.
    An empty name: the job has no family."""
    user: UserName | None = None
    """The Unix user whose job it is. A family belongs to its user. Without it: to the host whose token registered the
    job, or to the operators."""


class PredictedTarget(Message):
    """When a job is expected to reach a target, or has reached it."""

    metric: float | None
    """The value of the metric at the target. null: it is not known."""
    iteration: float | None
    """The iteration, from the start of the job, as a median. null: it is not known."""
    low: float | None
    """The iteration before which it comes with a chance of 10 %."""
    high: float | None
    """The iteration before which it comes with a chance of 90 %."""
    reached: bool = False
    """Whether the policy takes it as reached already, at about this iteration."""


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
    ended_at: float | None = None
    """When it ended, in seconds since the Unix epoch. null: it has not ended."""
    diverged: bool = False
    """Whether this run has reported that it diverged: that its metric or its loss is no finite number."""
    service_class: int | None
    """Its class in the plan in force. Class 0 is served first. null: it is not in the plan."""
    dscp: int | None = None
    """The DSCP that it has from its registration to its end. null: it has ended, or jobs have those of their
    classes."""
    acknowledgement_dscp: int | None = None
    """The DSCP that its packets without data may have, which go first. null: they have dscp."""
    connections: int = 0
    """How many live connections of the job the agents have found."""
    measured_demand: Annotated[tuple[MeasuredDemand, ...], Field(strict=False)] = ()
    """The bytes of one iteration between hosts, as measured."""
    measured_iterations: float = 0.0
    """Over how many of the latest iterations the demand was measured."""
    iterations_of_epoch: float | None = None
    """Of a job whose progress counts epochs: how many iterations an epoch has, which is what it sends in an epoch by
    what it declares to send in an iteration. null: it is not known."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Where the measured demand differs much from the declared one, where other jobs declare the same traffic, and
    where bytes of the job leave by ways that are not seen."""
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
