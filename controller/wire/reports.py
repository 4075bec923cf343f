"""The messages of a host's reports: progress, bytes, connections; and the answer to them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, model_validator

from controller.wire.addresses import EndpointName, InterfaceName
from controller.wire.base import PRINTABLE_PATTERN, Bytes, Iterations, Message, MetricValue, Name, Seconds, TcpPort
from controller.wire.interfaces import MAX_INTERFACES, InterfaceTraffic
from controller.wire.jobs import ConnectionSpec

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

MAX_UNREAD = 400
"""Allow so many characters of a reason why a job's output cannot be read."""

MAX_TUNNEL_PORTS = 8
"""Allow tunnels at so many UDP ports of a host."""

MAX_POINTS = 10_000
"""Allow this many points of progress in one batch, over all its jobs."""


class ProgressPoint(Message):
    """The iterations done at a time, and the metric at that time, if it was measured."""

    iteration: Iterations
    """How many iterations are done."""
    time: Seconds
    """When, in seconds since the Unix epoch."""
    metric: MetricValue | None = None
    """The value of the metric then. null: it was not measured."""


class JobReport(Message):
    """The news of one job from one host."""

    job: Name
    """The name of the job."""
    points: Annotated[tuple[ProgressPoint, ...], Field(max_length=MAX_POINTS, strict=False)] = ()
    """The progress since the last batch."""
    sent_bytes: Bytes | None = None
    """The bytes that this host has sent for the job since its agent began to count. null: they are not counted."""
    counter: Annotated[int, Field(ge=0, le=2**62)] = 0
    """Distinguishes the counts of a session: another number is another count, which began at 0."""
    followed: bool = False
    """Whether the agent follows the job and will report its end. An agent that only counts the job's bytes will not."""
    ended: bool = False
    """Whether the job has ended."""
    diverged: bool = False
    """Whether this run has diverged: its metric or its loss is no finite number. It stays so until the next run."""
    unread: Annotated[str, StringConstraints(max_length=MAX_UNREAD, pattern=PRINTABLE_PATTERN)] | None = None
    """Why the agent cannot read the progress in the job's output, and how many lines it did not understand. The lines
    themselves stay on the host. Empty: it can. null: as it was reported last."""
    as_of: Seconds | None = None
    """The time of the news by the host's clock, when the job ended or the bytes were counted. null: when the batch was
    sent. It distinguishes a late end from the end of the job's next run."""


class FlowSeen(Message):
    """A connection of a job that the host has found: TCP over IPv4 or IPv6."""

    job: Name
    """The name of the job."""
    flow: ConnectionSpec
    """The connection."""


class LinkSeen(Message):
    """TCP connections of a job between the reporting host and ``peer``, both directions, over IPv4 or IPv6.

    A link with one port, the host's own or the peer's, is all connections through that port, which is the job's alone.
    A link with both ports is one connection.
    """

    peer: EndpointName
    """The host at the other end, or HOST/INTERFACE where that host has several interfaces in the network."""
    port: TcpPort | None = None
    """The TCP port at the reporting host."""
    peer_port: TcpPort | None = None
    """The TCP port at the peer."""
    interface: InterfaceName | None = None
    """The interface of the reporting host whose address is used. null: not told, or it has one."""

    @model_validator(mode="after")
    def _has_a_port(self) -> LinkSeen:
        if self.port is None and self.peer_port is None:
            raise ValueError("a link needs port or peer_port")
        return self


class PeerBytes(Message):
    """Payload bytes of a job's connections with a peer."""

    peer: EndpointName
    """The host at the other end, or HOST/INTERFACE where that host has several interfaces in the network."""
    sent: Bytes = 0.0
    """The bytes that the peer has acknowledged."""
    received: Bytes = 0.0
    """The bytes that were received from the peer."""
    interface: InterfaceName | None = None
    """The interface of the reporting host whose address is used. null: not told, or it has one."""


class JobTraffic(Message):
    """All of a job's connections that a host's agent has found. It replaces what the agent reported before.

    A host that reports a job's traffic, even if there is none yet, can mark all that the job sends from there.
    """

    job: Name
    """The name of the job."""
    as_of: Seconds
    """The time of this by the host's clock, in seconds since the Unix epoch."""
    counter: Annotated[int, Field(ge=0, le=2**62)] = 0
    """Distinguishes the counts of a session, as in JobReport."""
    links: Annotated[tuple[LinkSeen, ...], Field(max_length=MAX_LINKS, strict=False)] | None = None
    """The connections. null: they are as reported last."""
    left_out: Annotated[int, Field(ge=0, le=10**9)] = 0
    """How many links were too many to name."""
    connections: Annotated[int, Field(ge=0, le=10**9)] = 0
    """How many connections live."""
    peers: Annotated[tuple[PeerBytes, ...], Field(max_length=MAX_PEERS, strict=False)] = ()
    """The bytes with each peer since counter began."""
    missed: Bytes | None = None
    """The bytes sent to other hosts on connections that were too short to know their job, and that may be this job's.
    null: unknown."""


class HostReport(Message):
    """Body of ``POST /v1/hosts/{host}/reports``: one batch of a host.

    A batch that was already merged is ignored, and a late batch is merged; both are answered like any other. An empty
    batch renews the lease.

    Connections that an earlier session reported are forgotten if this one does not report them within 45 s of its first
    batch. All connections that a host has reported are forgotten when its lease runs out.
    """

    session: Name
    """The name of one run of the agent."""
    seq: Annotated[int, Field(ge=1, le=2**62)]
    """The number of the batch in its session, from 1."""
    sent_at: Seconds
    """When the batch was sent, in seconds since the Unix epoch."""
    marks_acknowledgements: bool = False
    """Whether the host gives packets without data of its jobs the DSCP for acknowledgements, and clears that DSCP where
    a program has set it, so that switches may trust it."""
    tunnel_ports: Annotated[tuple[TcpPort, ...], Field(max_length=MAX_TUNNEL_PORTS, strict=False)] = ()
    """The UDP ports of the host's tunnels whose packets leave with the DSCP of the job that is inside them, and never
    with one that a program has set, so that switches may trust it."""
    marks: bool | None = None
    """Whether the host's packet filter gives the packets of jobs the DSCPs of the host's plan. null: that is not known,
    such as before the first plan, and where sockets are marked one by one."""
    jobs: Annotated[tuple[JobReport, ...], Field(max_length=4096, strict=False)] = ()
    """The news of jobs."""
    flows: Annotated[tuple[FlowSeen, ...], Field(max_length=MAX_FLOWS, strict=False)] = ()
    """Connections that were found."""
    traffic: Annotated[tuple[JobTraffic, ...], Field(max_length=MAX_TRAFFIC, strict=False)] = ()
    """All connections of jobs, by job."""
    interfaces: Annotated[tuple[InterfaceTraffic, ...], Field(max_length=MAX_INTERFACES, strict=False)] | None = None
    """What all interfaces have carried that are compared with the connections. null: they are as reported last."""

    @model_validator(mode="after")
    def _is_taken_at_once(self) -> HostReport:
        if (count := sum(len(part.links or ()) for part in self.traffic)) > MAX_BATCH_LINKS:
            raise ValueError(f"a batch has at most {MAX_BATCH_LINKS} links, this one {count}; leave some out")
        if len({part.interface for part in self.interfaces or ()}) < len(self.interfaces or ()):
            raise ValueError("an interface is there twice; name each interface once")
        if (count := sum(len(part.points) for part in self.jobs)) > MAX_POINTS:
            raise ValueError(f"a batch has at most {MAX_POINTS} points of progress, this one {count}; send several")
        return self


class ReportRefusal(Message):
    """One part of a batch that was not merged, and why; the rest was merged."""

    job: str
    """The name of the job."""
    reason: str
    """Why the part was not merged."""


class Threshold(Message):
    """A value of a job's metric, and the direction in which the metric crosses it."""

    metric: MetricValue
    """The value."""
    direction: Literal["max", "min"] = "max"
    """Whether the metric reaches it from below (max) or from above (min)."""

    def is_reached(self, metric: float | None) -> bool:
        """Returns whether a metric has reached the value; None (not measured) has not."""
        if metric is None:
            return False
        return metric >= self.metric if self.direction == "max" else metric <= self.metric


class ReportAnswer(Message):
    """Answer to a report: whether it was new, what was refused, and how long the host's lease runs."""

    status: Literal["taken", "duplicate"]
    """Whether the batch was new (taken) or was merged before (duplicate)."""
    refused: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    """The parts that were not merged. The rest was merged."""
    left_out: Annotated[tuple[ReportRefusal, ...], Field(strict=False)] = ()
    """The parts of which something is not believed. The rest was merged."""
    lease_seconds: float
    """How long the lease of the host runs from now, in seconds."""
    period_seconds: float
    """Progress is used for a plan once in this time, and need not be reported more often."""
    urgent: dict[Name, Threshold] = Field(default_factory=dict)
    """For jobs of the report: the value of the metric whose crossing should be reported at once."""
    held: Annotated[tuple[Name, ...], Field(strict=False)] = ()
    """In the answer to a session's first batch: the jobs that run here and that an earlier agent of this host has
    followed. If they ended while there was no agent, nobody has reported the end."""
