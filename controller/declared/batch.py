"""One batch of a host's report as plain values, which are cheap to make and to hand from one process to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.declared.frames import pack, pack_rows, unpack, unpack_rows
from controller.declared.job_flows import FlowKey, key_of
from controller.pieces import Steps
from controller.wire import HostReport, InterfaceKind, LinkSeen

Point = tuple[float, float, float | None]
"""Iteration, time, metric: the fields of ``model.Progress``."""
Link = tuple[str, int | None, int | None, str | None]
"""Peer, the host's own port, the peer's, the host's own interface: the fields of ``wire.LinkSeen``."""
Peer = tuple[str, float, float, str | None]
"""Peer, bytes sent to it and received from it, the host's own interface: the fields of ``wire.PeerBytes``."""


class JobPart(NamedTuple):
    """The news of one job from one host; the fields of ``wire.JobReport``."""

    job: str
    points: Sequence[Point]
    sent_bytes: float | None
    counter: int
    followed: bool
    ended: bool
    as_of: float | None
    diverged: bool
    unread: str | None


class FlowPart(NamedTuple):
    """A connection of a job that the host has found; the fields of ``wire.FlowSeen``."""

    job: str
    flow: FlowKey


class TrafficPart(NamedTuple):
    """All of a job's connections that a host's agent has found; the fields of ``wire.JobTraffic``."""

    job: str
    as_of: float
    counter: int
    links: Sequence[Link] | None
    left_out: int
    connections: int
    peers: Sequence[Peer]
    missed: float | None


class InterfacePart(NamedTuple):
    """What an interface of a host has carried; the fields of ``wire.InterfaceTraffic``."""

    interface: str
    kind: InterfaceKind
    sent: float = 0.0
    received: float = 0.0
    unseen_sent: float = 0.0
    unseen_received: float = 0.0
    unseen_sent_rate: float | None = None
    unseen_received_rate: float | None = None

    @property
    def is_unseen(self) -> bool:
        """Whether bytes leave or come by ways that are not seen."""
        return self.unseen_sent_rate is not None or self.unseen_received_rate is not None


@dataclass(frozen=True, slots=True)
class Batch:
    """The parts of a ``wire.HostReport``."""

    session: str
    seq: int
    sent_at: float
    marks_acknowledgements: bool
    jobs: Sequence[JobPart]
    flows: Sequence[FlowPart]
    traffic: Sequence[TrafficPart]
    interfaces: Sequence[InterfacePart] | None = None
    marks: bool | None = None
    tunnel_ports: tuple[int, ...] = ()

    @property
    def brings_news(self) -> bool:
        """Returns whether it brings news that will not come again by itself.

        A sign of life and counts that only grow come again.
        """
        found = any(part.links is not None for part in self.traffic)
        return found or bool(self.flows) or any(part.points or part.ended or part.diverged for part in self.jobs)

    @classmethod
    def of(cls, report: HostReport) -> Batch:
        """Returns the values of a report."""
        return cls(
            report.session,
            report.seq,
            report.sent_at,
            report.marks_acknowledgements,
            [
                JobPart(
                    part.job,
                    [(point.iteration, point.time, point.metric) for point in part.points],
                    part.sent_bytes,
                    part.counter,
                    part.followed,
                    part.ended,
                    part.as_of,
                    part.diverged,
                    part.unread,
                )
                for part in report.jobs
            ],
            [FlowPart(seen.job, key_of(seen.flow)) for seen in report.flows],
            [
                TrafficPart(
                    part.job,
                    part.as_of,
                    part.counter,
                    None if part.links is None else list(map(_link, part.links)),
                    part.left_out,
                    part.connections,
                    [(peer.peer, peer.sent, peer.received, peer.interface) for peer in part.peers],
                    part.missed,
                )
                for part in report.traffic
            ],
            _interfaces(report),
            report.marks,
            tuple(sorted(set(report.tunnel_ports))),
        )

    def frames(self) -> Iterator[bytes]:
        """Yields the same as bytes, in frames that are small enough to be read without a pause."""
        head = (self.session, self.seq, self.sent_at, self.marks_acknowledgements, self.marks, self.tunnel_ports)
        yield pack(head)
        yield pack(None if self.interfaces is None else list(map(tuple, self.interfaces)))
        yield from pack_rows(map(tuple, self.jobs), lambda part: 1 + len(part[1]))
        yield from pack_rows(map(tuple, self.flows))
        yield from pack_rows(map(tuple, self.traffic), lambda part: 1 + len(part[3] or ()) + len(part[6]))

    @classmethod
    def from_frames(cls, frames: Iterator[bytes]) -> Steps[Batch]:
        """Returns the value of ``frames``; yields after each frame."""
        session, seq, sent_at, marks_acknowledgements, marks, tunnels = unpack(next(frames))
        rows = unpack(next(frames))
        interfaces = None if rows is None else [InterfacePart._make(row) for row in rows]
        jobs = yield from unpack_rows(frames, JobPart._make)
        flows = yield from unpack_rows(frames, FlowPart._make)
        traffic = yield from unpack_rows(frames, TrafficPart._make)
        ports = tuple(tunnels)
        return cls(session, seq, sent_at, marks_acknowledgements, jobs, flows, traffic, interfaces, marks, ports)


def _link(link: LinkSeen) -> Link:
    return (link.peer, link.port, link.peer_port, link.interface)


def _interfaces(report: HostReport) -> list[InterfacePart] | None:
    """Returns the interfaces of a report; None: they are as reported last."""
    if report.interfaces is None:
        return None
    return [InterfacePart(**part.model_dump()) for part in report.interfaces]
