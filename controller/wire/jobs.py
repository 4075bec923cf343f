"""The messages on jobs and stages: their specs, and how the API shows them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from controller.model import Role
from controller.wire.base import PRINTABLE_PATTERN, Bytes, Message, Name, Positive, Seconds, TcpPort


class MetricSpec(Message):
    """The metric that a job's progress is measured by."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=PRINTABLE_PATTERN)] = "accuracy"
    direction: Literal["max", "min"] = "max"


class TaskSpec(Message):
    """One process of a job, and the TCP port that it listens on. All traffic to and from that port is the job's."""

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
    """Body of ``PUT /v1/jobs/{id}``: what a job declares.

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
    """A job as ``GET /v1/jobs/{id}`` shows it: its spec and what is known of it now.

    ``connections`` counts the live connections that agents found. ``measured_demand`` has the bytes of one iteration,
    measured over the latest ``measured_iterations``. ``problems``: what the job declares and is measured otherwise.
    """

    id: Name
    spec: JobSpec
    arrival: float
    state: Literal["waiting", "running", "ended", "lost"]
    iterations_done: float
    last_metric: float | None
    last_report: float | None
    service_class: int | None
    connections: int = 0
    measured_demand: Annotated[tuple[DemandSpec, ...], Field(strict=False)] = ()
    measured_iterations: float = 0.0
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()


class JobList(Message):
    """Body of ``GET /v1/jobs``."""

    jobs: Annotated[tuple[JobState, ...], Field(strict=False)]


class StageSpec(Message):
    """Body of ``PUT /v1/stages/{id}``: the jobs of one hyper-parameter rung."""

    jobs: Annotated[tuple[Name, ...], Field(max_length=4096, strict=False)]


class StageState(Message):
    """A stage as the API shows it: the jobs that are in it now."""

    id: Name
    jobs: Annotated[tuple[str, ...], Field(strict=False)]
