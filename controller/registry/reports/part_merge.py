"""Merges the parts of a host's batch into job records: points, bytes sent, flows and links.

All merges are monotone and idempotent, so a batch may come twice, late or in another order. A function here changes the
record that it is given, and returns what else follows from the part. The journal, the end of jobs and the triggers of
plans are the registry's.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controller.declared.batch import JobPart, Link, Point, TrafficPart
from controller.declared.job_flows import FlowKey, between_servers
from controller.declared.owners import Owners
from controller.model import Progress, endpoint, server_of
from controller.pieces import Steps
from controller.registry.job.record import JobRecord
from controller.registry.job.traffic import both_ways
from controller.wire import MAX_BYTES

POINTS_A_STEP = 250
LINKS_A_STEP = 500


@dataclass(frozen=True, slots=True)
class BatchOrigin:
    """Which host and agent sent a batch, and when.

    ``session`` and ``seq`` name the batch. ``is_current``: the session is that of the host's present agent, not of one
    before it. ``clock_offset`` is added to the host's times to get the controller's. ``sent_at`` is by the host's
    clock, ``now`` by the controller's. ``received_at`` is by ``time.monotonic``.
    """

    host: str
    session: str
    seq: int
    is_current: bool
    clock_offset: float
    sent_at: float
    now: float
    received_at: float

    def controller_time(self, time: float | None) -> float:
        """Returns a time of the host by the controller's clock, ``now`` at most. None stands for ``sent_at``."""
        return min((self.sent_at if time is None else time) + self.clock_offset, self.now)


class Known(NamedTuple):
    """The hosts in the settings, the names of their interfaces, and who owns which traffic."""

    hosts: Container[str]
    endpoints: Container[str]
    owners: Owners

    def endpoint(self, name: str) -> str:
        """Returns the name of an interface; that of its server where the settings do not have it."""
        return name if name in self.endpoints else server_of(name)


class PartOutcome(NamedTuple):
    """What follows from a host's report of one job.

    ``new_points`` are to be journalled; where ``is_thinned``, the record keeps fewer points than before. ``previous``
    is the latest point with a metric before the report. ``ended_at`` is the time of the end that was reported, by the
    controller's clock; None: the job goes on. ``refused`` and ``left_out`` are sentences for the host.
    """

    new_points: list[Progress]
    is_thinned: bool
    previous: Progress | None
    ended_at: float | None
    refused: list[str]
    left_out: list[str]


class LinksOutcome(NamedTuple):
    """Whether a job's traffic has changed, and sentences about the links that were left out."""

    is_changed: bool
    left_out: list[str]


def merge_job_part(job: JobRecord, part: JobPart, origin: BatchOrigin) -> Steps[PartOutcome]:
    """Merge what a host reports of one job; yields where others may go on.

    Nothing is merged that is of an earlier run of the job, however late it comes.
    """
    known_at = origin.controller_time(part.as_of)
    is_of_run = job.is_of_run(known_at)
    previous, strides = job.history.last_measured, job.history.strides
    new_points: list[Progress] = []
    refused: list[str] = []
    accepted, unbelievable = yield from _merge_points(job, part.points, origin, new_points)
    left_out = [_doubt(job, unbelievable)] if unbelievable else []
    if stale := len(part.points) - accepted:
        refused.append(f"{stale} points are from before this run of the job; is the host's clock right?")
    if not is_of_run and (part.ended or part.diverged or part.sent_bytes is not None):
        what = "the end" if part.ended else "its divergence" if part.diverged else "the count of bytes"
        refused.append(f"{what} is from before this run of the job; is the host's clock right?")
    if part.sent_bytes is not None and is_of_run:
        # A host's counts add up, so each has a name.
        job.merge_sent(origin.host, f"{origin.session}:{part.counter}", part.sent_bytes)
    if part.diverged and is_of_run:
        job.diverge()
    if part.unread is not None and is_of_run:
        job.note_unread(origin.host, part.unread)
    # An agent that only counts a job's bytes does not know how the job fares.
    is_witness = part.followed or part.ended or part.sent_bytes is None
    if accepted or (is_witness and is_of_run):
        job.reported_by[origin.host] = part.followed or job.reported_by.get(origin.host, False)
    job.last_report = origin.now if job.last_report is None else max(job.last_report, origin.now)
    job.received_at = origin.received_at
    return PartOutcome(
        new_points=new_points,
        is_thinned=job.history.strides != strides,
        previous=previous,
        ended_at=known_at if part.ended and is_of_run else None,
        refused=refused,
        left_out=left_out,
    )


def _merge_points(
    job: JobRecord, points: Collection[Point], origin: BatchOrigin, new_points: list[Progress]
) -> Steps[tuple[int, int]]:
    """Merge points and add the new ones to ``new_points``.

    Returns how many points are of this run, and how many of these are beyond what is believed.
    """
    accepted = unbelievable = 0
    for number, fields in enumerate(points):
        point = Progress(*fields)
        if job.is_of_run(origin.controller_time(point.time)):
            accepted += 1
            unbelievable += not job.believes(point)
            if job.merge_point(point):
                new_points.append(point)
        if number % POINTS_A_STEP == POINTS_A_STEP - 1:
            yield
    return accepted, unbelievable


def _doubt(job: JobRecord, count: int) -> str:
    """Note that points of a run are not believed; returns the sentence for the host."""
    reason = f"{count} points are beyond iteration {job.most_iterations:g}, the most that is believed"
    job.doubt(reason)
    return reason


def refusal_of_flow(job: JobRecord, flow: FlowKey, host: str, known: Known) -> str | None:
    """Returns why a flow that ``host`` saw cannot be the job's; None where it can."""
    src, dst, *_ = flow
    if host not in (src, dst) or src not in known.hosts or dst not in known.hosts:
        return f"flow {src} to {dst}: {host} is no end of it, or an end is unknown"
    owner = known.owners.owner(flow)
    if owner is not None and owner != job.id:
        return f"flow {src} to {dst}: it belongs to job {owner}"
    return None


def merge_links(
    job: JobRecord, part: TrafficPart, origin: BatchOrigin, known: Known, *, room: int
) -> Steps[LinksOutcome]:
    """Merge a job's connections at a host; yields where others may go on.

    Of the links at most ``room`` are kept. Links to unknown hosts, and those that other jobs declare, are left out.
    """
    flows: list[FlowKey] | None = None
    foreign: dict[str, int] = {}
    if part.links is not None:
        candidates = yield from _flows_of(job, part.links, origin.host, known, room=room, foreign=foreign)
        # Another job may have declared some of them meanwhile.
        flows = [flow for flow in candidates if known.owners.owner(between_servers(flow)) in (None, job.id)]
    is_changed = job.merge_found(
        origin.host, origin.session, origin.seq, flows, left_out=part.left_out, connections=part.connections
    )
    left_out = [
        f"{count} connections are on ports that job {owner} declares" for owner, count in sorted(foreign.items())
    ]
    return LinksOutcome(is_changed, left_out)


def _flows_of(
    job: JobRecord, links: Sequence[Link], host: str, known: Known, *, room: int, foreign: dict[str, int]
) -> Steps[list[FlowKey]]:
    """Returns both directions of the links that can be the job's. ``foreign`` counts the others by their owners."""
    flows: list[FlowKey] = []
    for number, (peer, port, peer_port, interface) in enumerate(links):
        if number % LINKS_A_STEP == LINKS_A_STEP - 1:
            yield
        server = server_of(peer)
        if server not in known.hosts or server == host or len(flows) >= 2 * room:
            continue
        ways = both_ways(host, server, port, peer_port)
        owner = next((owner for way in ways if (owner := known.owners.owner(way)) not in (None, job.id)), None)
        if owner is None:
            flows += both_ways(known.endpoint(endpoint(host, interface)), known.endpoint(peer), port, peer_port)
        else:
            foreign[owner] = foreign.get(owner, 0) + 1
    return flows


def merge_counts(job: JobRecord, part: TrafficPart, origin: BatchOrigin, known: Known) -> None:
    """Merge the bytes that a host has counted on a job's connections with each known peer."""
    counts: dict[tuple[str, str], tuple[float, float]] = {}
    for peer, sent, received, interface in part.peers:
        if server_of(peer) in known.hosts:
            # Interfaces that the settings do not have any more are one: that of their server.
            ends = (known.endpoint(endpoint(origin.host, interface)), known.endpoint(peer))
            before = counts.get(ends, (0.0, 0.0))
            counts[ends] = (before[0] + sent, before[1] + received)
    name = f"{origin.session}:found{part.counter}"
    job.merge_sent(origin.host, name, min(sum(sent for sent, _ in counts.values()), MAX_BYTES))
    job.measured.note(origin.host, name, part.as_of, counts, part.missed)


def latest_traffic(parts: Iterable[TrafficPart]) -> Collection[TrafficPart]:
    """Returns one part a job: the last one, with the links that were reported last. Each replaces those before it."""
    latest: dict[str, TrafficPart] = {}
    for part in parts:
        before = latest.get(part.job)
        if part.links is None and before is not None and before.links is not None:
            latest[part.job] = part._replace(links=before.links, left_out=before.left_out)
        else:
            latest[part.job] = part
    return latest.values()
