"""A job as records of the journal, and back: what seldom changes, what every report changes, and its connections."""

from __future__ import annotations

from collections.abc import Iterable

from controller.declared.declared import Declared
from controller.declared.demand_texts import texts_of
from controller.declared.json_texts import with_members
from controller.declared.parts.joined import join
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.journal.bodies import JobBody, PartBody, ReporterBody, SeenBody, TallyBody
from controller.model import Demand
from controller.pieces import whole
from controller.registry.job.measured_demand import Measured, Measurement
from controller.registry.job.part_bodies import part_of, told_lists
from controller.registry.job.record import JobRecord
from controller.registry.job.sent_counts import SentByHost, SentCounts
from controller.registry.job.traffic import Finding, FoundTraffic


def job_text(job: JobRecord) -> str:
    """Returns what seldom changes as the text of a ``JobBody``."""
    # The spec is JSON already, and may be large.
    rest = JobBody.model_construct(
        run=job.run,
        arrival=job.arrival,
        registered_at=job.registered_at,
        since=job.since,
        ended_at=job.ended_at,
        lost_since=job.lost_since,
        stage=job.stage,
        registrar=job.registrar,
        dscp=job.dscp,
        told={} if job.parts is None else told_lists(job.parts.lists),
    )
    # The parts have records of their own: there may be thousands, and each changes by itself.
    return with_members(rest.model_dump_json(exclude={"spec"}), spec=job.spec.text if job.parts is None else "null")


def job_of(job_id: str, body: JobBody, parts: Iterable[PartBody] = ()) -> JobRecord:
    """Returns the job of a record, without its tally, its connections and its points.

    ``parts`` are the records of its parts; there is one at least where the body has no spec.
    """
    joined = PartsOfJob(part_of(part, body.told) for part in parts) if body.spec is None else None
    job = JobRecord(
        job_id,
        Declared.of(body.spec) if body.spec is not None else join(joined or PartsOfJob()),
        run=body.run,
        arrival=body.arrival,
        registered_at=body.registered_at,
        since=body.since,
        registrar=body.registrar,
        parts=joined,
    )
    job.ended_at = body.ended_at
    job.lost_since = body.lost_since
    job.stage = body.stage
    job.dscp = body.dscp
    return job


def tally_text(job: JobRecord) -> str:
    """Returns what every report changes, beside the points, as the text of a ``TallyBody``."""
    measured = job.measured.value or Measurement((), 0.0, frozenset())
    counts = job.sent.counts
    # The wire and the record have checked the values. They are not checked again: a report may be of 1000 jobs.
    rest = TallyBody.model_construct(
        sent={host: count.before for host, count in counts.items()},
        counts={host: count.latest() for host, count in counts.items()},
        last_report=job.last_report,
        told_by=job.reported_by,
        diverged=job.diverged,
        measured_iterations=measured.iterations,
        measured_on=tuple(sorted(measured.sources)),
    )
    text = rest.model_dump_json(exclude={"measured"})
    return with_members(text, measured=whole(texts_of(measured.demand)).as_rows)


def add_tally(job: JobRecord, tally: TallyBody) -> None:
    """Add the tally of a record to a job that has been read just now."""
    job.last_report = tally.last_report
    job.reported_by = dict(tally.told_by)
    job.diverged = tally.diverged
    job.sent = SentByHost({host: SentCounts(sent, tally.counts.get(host, ())) for host, sent in tally.sent.items()})
    if tally.measured:
        demand = tuple(Demand(*entry) for entry in tally.measured)
        job.measured = Measured(Measurement(demand, tally.measured_iterations, frozenset(tally.measured_on)))


def seen_of(job: JobRecord) -> SeenBody | None:
    """Returns the connections that hosts found; None without any."""
    seen, found = job.connections.seen, job.connections.found.findings
    if not seen and not found:
        return None
    return SeenBody.model_construct(
        flows=seen,
        found={host: tuple(sorted(finding.flows, key=str)) for host, finding in found.items()},
        tellers={
            host: ReporterBody.model_construct(session=finding.session, left_out=finding.left_out)
            for host, finding in found.items()
            if finding.session
        },
    )


def add_seen(job: JobRecord, seen: SeenBody) -> None:
    """Add the connections of a record to a job that has been read just now."""
    findings = {}
    for host, flows in seen.found.items():
        teller = seen.tellers.get(host)
        findings[host] = Finding(
            teller.session if teller is not None else "",
            flows=frozenset(flows),
            left_out=teller.left_out if teller is not None else 0,
        )
    job.connections.restore(seen.flows, FoundTraffic(findings))
