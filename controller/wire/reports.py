"""The messages of a host's reports: progress, bytes, connections; and the answer to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from controller.wire.base import Bytes, Iterations, Message, MetricValue, Name, Seconds, TcpPort
from controller.wire.jobs import FlowSpec

MAX_FLOWS = 4096
"""Allow this many connections in one batch, as many as a job may have."""

MAX_TRAFFIC = 1024
"""Allow the connections of this many jobs in one batch: each is measured anew, and the loop waits meanwhile."""

MAX_LINKS = 4096
"""Let a host name this many links of a job; it only counts the others."""

MAX_BATCH_LINKS = 16_384
"""Allow this many links in one batch, over all its jobs, and of one host, over all its batches."""

MAX_PEERS = 4096
"""Allow this many peers of a job at one host."""

MAX_POINTS = 10_000
"""Allow this many points of progress in one batch, over all its jobs."""


class ProgressPoint(Message):
    """The iterations done at a time, and the metric at that time, if it was measured."""

    iteration: Iterations
    time: Seconds
    metric: MetricValue | None = None


class JobReport(Message):
    """The news of one job from one host.

    ``sent_bytes`` is cumulative, of this host, since its agent began to count. ``counter`` distinguishes the counts of
    a session: another number is another count, which began at 0. ``followed``: the agent follows the job and will
    report its end; an agent that only counts the job's bytes will not.

    ``as_of``: the time of the news by the host's clock, when the job ended or the bytes were counted (None: when the
    batch was sent). It distinguishes a late end from the end of the job's next run.
    """

    job: Name
    points: Annotated[tuple[ProgressPoint, ...], Field(max_length=MAX_POINTS, strict=False)] = ()
    sent_bytes: Bytes | None = None
    counter: Annotated[int, Field(ge=0, le=2**62)] = 0
    followed: bool = False
    ended: bool = False
    as_of: Seconds | None = None


class FlowSeen(Message):
    """A connection of a job that the host has found (IPv4, TCP)."""

    job: Name
    flow: FlowSpec


class LinkSeen(Message):
    """TCP connections of a job between the reporting host and ``peer``, both directions (IPv4).

    A link with one port, the host's own or the peer's, is all connections through that port, which is the job's alone.
    A link with both ports is one connection.
    """

    peer: Name
    port: TcpPort | None = None
    peer_port: TcpPort | None = None

    @model_validator(mode="after")
    def _has_a_port(self) -> LinkSeen:
        if self.port is None and self.peer_port is None:
            raise ValueError("a link needs port or peer_port")
        return self


class PeerBytes(Message):
    """Payload bytes of a job's connections with a peer: those that it acknowledged, and those received from it."""

    peer: Name
    sent: Bytes = 0.0
    received: Bytes = 0.0


class JobTraffic(Message):
    """All of a job's connections that a host's agent has found. It replaces what the agent reported before.

    ``links`` of None: they are as reported last. ``connections`` counts those that live; ``left_out`` counts the links
    that were too many to name. ``peers`` count since ``counter`` began, as in JobReport. ``missed`` has the bytes sent
    to other hosts on connections that were too short to know their job, and that may be this job's (None: unknown).
    ``as_of``: the time of this by the host's clock. A host that reports a job's traffic, even if there is none yet, can
    mark all that the job sends from there.
    """

    job: Name
    as_of: Seconds
    counter: Annotated[int, Field(ge=0, le=2**62)] = 0
    links: Annotated[tuple[LinkSeen, ...], Field(max_length=MAX_LINKS, strict=False)] | None = None
    left_out: Annotated[int, Field(ge=0, le=10**9)] = 0
    connections: Annotated[int, Field(ge=0, le=10**9)] = 0
    peers: Annotated[tuple[PeerBytes, ...], Field(max_length=MAX_PEERS, strict=False)] = ()
    missed: Bytes | None = None


class HostReport(Message):
    """Body of ``POST /v1/hosts/{host}/reports``: one batch of a host.

    ``session`` names one run of the agent; ``seq`` counts its batches from 1. A batch that was already merged
    is ignored, and a late batch is merged; both are answered like any other. An empty batch renews the lease.

    ``marks_acknowledgements``: the host gives packets without data of its jobs the DSCP for acknowledgements, and
    clears that DSCP where a program has set it, so that switches may trust it.

    Connections that an earlier session reported are forgotten if this one does not report them within 45 s of its first
    batch. All connections that a host has reported are forgotten when its lease runs out. A batch has the traffic of at
    most MAX_TRAFFIC jobs.
    """

    session: Name
    seq: Annotated[int, Field(ge=1, le=2**62)]
    sent_at: Seconds
    marks_acknowledgements: bool = False
    jobs: Annotated[tuple[JobReport, ...], Field(max_length=4096, strict=False)] = ()
    flows: Annotated[tuple[FlowSeen, ...], Field(max_length=MAX_FLOWS, strict=False)] = ()
    traffic: Annotated[tuple[JobTraffic, ...], Field(max_length=MAX_TRAFFIC, strict=False)] = ()

    @model_validator(mode="after")
    def _is_taken_at_once(self) -> HostReport:
        if (count := sum(len(part.links or ()) for part in self.traffic)) > MAX_BATCH_LINKS:
            raise ValueError(f"a batch has at most {MAX_BATCH_LINKS} links, this one {count}; leave some out")
        if (count := sum(len(part.points) for part in self.jobs)) > MAX_POINTS:
            raise ValueError(f"a batch has at most {MAX_POINTS} points of progress, this one {count}; send several")
        return self


class ReportRefusal(Message):
    """One part of a batch that was not merged, and why; the rest was merged."""

    job: str
    reason: str


class Threshold(Message):
    """A value of a job's metric, and the direction in which the metric crosses it."""

    metric: MetricValue
    direction: Literal["max", "min"] = "max"

    def is_reached(self, metric: float | None) -> bool:
        """Returns whether a metric has reached the value; None (not measured) has not."""
        if metric is None:
            return False
        return metric >= self.metric if self.direction == "max" else metric <= self.metric


class ReportAnswer(Message):
    """Answer to a report: whether it was new, what was refused, and how long the host's lease runs.

    ``left_out`` names parts of which something is not believed; the rest was merged. Progress is used for a plan once
    in ``period_seconds``, and need not be reported more often. ``urgent`` has, of the jobs in the report, the value
    whose crossing should be reported at once. ``held``, in the answer to a session's first batch, are the jobs that run
    here and that an earlier agent of this host has followed: if they ended while there was no agent, nobody has
    reported the end.
    """

    status: Literal["taken", "duplicate"]
    refused: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    left_out: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    lease_seconds: float
    period_seconds: float
    urgent: dict[Name, Threshold] = Field(default_factory=dict)
    held: Annotated[tuple[Name, ...], Field(strict=False)] = ()
