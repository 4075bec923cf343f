"""The messages on parts of jobs: what one host knows of a job that its agent has found."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from controller.wire.base import PRINTABLE_PATTERN, Message, MetricValue, Name, Seconds
from controller.wire.jobs import MetricSpec

_Label = Annotated[str, StringConstraints(max_length=127, pattern=PRINTABLE_PATTERN)]
_Processes = Annotated[int, Field(ge=1, le=10_000_000)]


class PartSpec(Message):
    """Body of ``PUT /v1/jobs/{id}/parts/{host}``: what one host knows of a job. The controller joins the parts."""

    launcher: Name
    """What has started the job, such as slurm or torchrun."""
    user: Annotated[str, StringConstraints(min_length=1, max_length=127, pattern=PRINTABLE_PATTERN)] | None = None
    """The Unix user whose job it is, or the namespace in Kubernetes."""
    family: _Label | None = None
    """The name under which runs of the same training are kept."""
    model: _Label | None = None
    """The name of the trained model, for people."""
    metric: MetricSpec | None = None
    """The metric that the job reports."""
    target: MetricValue | None = None
    """A value of the metric that the user calls done."""
    iterations: Annotated[float, Field(ge=1e-9, le=1e15)] | None = None
    """The length of the whole run in iterations, where it is known."""
    world_size: _Processes | None = None
    """How many processes the whole job has."""
    ranks: _Processes | None = None
    """How many of them run on this host."""
    is_first: bool = False
    """Whether rank 0 runs on this host."""
    hosts: Annotated[tuple[Name, ...], Field(max_length=4096, strict=False)] = ()
    """All hosts of the job, as the launcher tells them. Empty: it does not tell them."""
    arrival: Seconds | None = None
    """When the job was launched on this host, in seconds since the Unix epoch."""
