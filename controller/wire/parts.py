"""The messages on parts of jobs: what one host knows of a job that its agent has found."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.base import Label, Message, MetricValue, Name, RunLength, Seconds, Unit, UserName
from controller.wire.metric import MetricSpec

MAX_PART_HOSTS = 4096
"""Allow this many hosts in one part, as many as a job may have tasks."""
Processes = Annotated[int, Field(ge=1, le=10_000_000)]


class PartSpec(Message):
    """Body of ``PUT /v1/jobs/{id}/parts/{host}``: what one host knows of a job. The controller joins the parts."""

    launcher: Name
    """What has started the job, such as slurm or torchrun."""
    user: UserName | None = None
    """The Unix user whose job it is, or the namespace in Kubernetes. It is the same in all parts of a job."""
    family: Label | None = None
    """As in JobSpec. Of family, model, metric, target, iterations and unit counts what the part with is_first tells;
    without such a part, the word of the first host in alphabetical order that knows it."""
    model: Label | None = None
    """The name of the trained model, for people."""
    metric: MetricSpec | None = None
    """The metric that the job reports. Without it: as in JobSpec."""
    target: MetricValue | None = None
    """A value of the metric that the user calls done."""
    iterations: RunLength | None = None
    """The length of the whole run in iterations, where it is known."""
    unit: Unit | None = None
    """As in JobSpec. Without it: iteration."""
    world_size: Processes | None = None
    """How many processes the whole job has."""
    ranks: Processes | None = None
    """How many of them run on this host."""
    is_first: bool = False
    """Whether rank 0 runs on this host. Then progress and the end of the run are taken from this host only."""
    hosts: Annotated[tuple[Name, ...], Field(max_length=MAX_PART_HOSTS, strict=False)] = ()
    """All hosts of the job, as the launcher tells them, by their names in the settings. Empty: it does not tell them.
    Where a part tells them, no other host may have a part."""
    arrival: Seconds | None = None
    """When the job was launched on this host, in seconds since the Unix epoch, by the host's clock. It distinguishes
    a new launch of a job that has ended from a late message."""


class PartState(Message):
    """A part of a job, as ``GET /v1/jobs/{id}`` shows it."""

    launcher: Name
    """What has started the job."""
    state: Literal["running", "ended"]
    """running: the job runs on this host. ended: it does not any more."""
    is_first: bool = False
    """Whether rank 0 runs on this host."""
    world_size: int | None = None
    """How many processes the whole job has. null: it is not known."""
    ranks: int | None = None
    """How many of them run on this host. null: it is not known."""
    arrival: float | None = None
    """When the job was launched on this host, by the host's clock. null: it is not known."""


class PartAnswer(Message):
    """Answer to ``PUT /v1/jobs/{id}/parts/{host}``."""

    job: Name
    """The name of the job."""
    host: Name
    """The name of the host."""
    joined: bool
    """Whether the part counts. false: the job was registered whole, and the part changes nothing."""
    parts: int = 0
    """How many parts the job has now."""


class FoundBy(Message):
    """How agents have found a job."""

    launcher: Name
    """What has started it."""
    first: Name | None
    """The host that rank 0 runs on. null: it is not known."""
    hosts: Annotated[tuple[Name, ...], Field(strict=False)]
    """The hosts that have a part."""
    missing: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    """The hosts that the launcher names and that have no part."""
