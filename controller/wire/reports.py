"""The messages of a host's reports: progress, bytes, connections; and the answer to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from controller.wire.base import Bytes, Iterations, Message, MetricValue, Name, Seconds, TcpPort
from controller.wire.jobs import FlowSpec

MAX_FLOWS = 4096
"""Connections that one batch may name, as many as a job may have."""

MAX_TRAFFIC = 1024
"""Jobs of which one batch may tell the connections: each is measured anew, and the loop waits meanwhile."""

MAX_LINKS = 4096
"""Links of a job that a host may name; what is more is counted only."""

MAX_BATCH_LINKS = 16_384
"""Links that one batch may name, over all its jobs, and a host over all its batches."""

MAX_PEERS = 4096
"""Peers of a job at one host."""

MAX_POINTS = 10_000
"""Points of progress that one batch may bring, over all its jobs: they are merged in one go."""


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


class LinkSeen(Message):
    """TCP connections of a job between the reporting host and ``peer``, both directions (IPv4).

    With one port, the host's own or the peer's: all connections through it, which are the job's alone; with both, one.
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
    """Payload bytes of a job's connections with a peer: acknowledged by it, and come from it."""

    peer: Name
    sent: Bytes = 0.0
    received: Bytes = 0.0


class JobTraffic(Message):
    """All that a host's agent has found of a job's connections: it takes the place of what was told before.

    ``links`` of None: they are as they were told last. ``connections``: how many live; ``left_out``: links that were
    too many to name. ``peers`` count since ``counter`` began, as in JobReport; ``missed``, beside them, the bytes sent
    to other hosts on connections too short to know whose they were, which may be the job's (None: not known how many).
    ``as_of``: when the host knew it, by its own clock. A host that tells of a job's traffic, be it none yet, can mark
    all that the job sends from there.
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

    ``session`` names one run of the agent; ``seq`` counts its batches from 1. A batch that was already taken is
    ignored, one that comes late is merged; both are answered like any other. An empty batch renews the lease.

    ``marks_acknowledgements``: the host gives what its jobs send without data the DSCP for that, and clears it where a
    program has set it, so that switches may believe it.

    Connections that an earlier session told are forgotten if this one does not tell them within 45 s of its first
    batch, and all that a host has told when its lease runs out. A batch has the traffic of at most MAX_TRAFFIC jobs.
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
