"""Parts of jobs: what hosts tell of the jobs that their agents have found is taken, joined, and ended here."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import replace
from enum import Enum

from controller.declared.parts.host_part import HostPart
from controller.declared.parts.joined import join
from controller.declared.parts.launches import Launch, is_after, is_meant, launch_of
from controller.declared.parts.part import Part
from controller.declared.parts.parts_of_job import NO_HOSTS, PartsOfJob
from controller.declared.parts.rules import verdict_on
from controller.refusals import Conflict, Invalid, NotAllowed, NotFound
from controller.registry.admission import check_room
from controller.registry.agents.leases import Leases
from controller.registry.job.record import JobRecord
from controller.registry.jobs import Jobs
from controller.registry.shares import check_share_of_parts
from controller.registry.triggers import Trigger


class PartChange(Enum):
    """What the PUT of a part did."""

    CREATED = "created"
    """The job runs on the host from now on, or anew."""
    REPLACED = "replaced"
    UNCHANGED = "unchanged"
    REGISTERED_WHOLE = "registered whole"
    """Nothing, because the job was registered whole."""


class Parts:
    """The parts of the jobs in ``jobs``. ``hosts`` are the names of those in the settings."""

    def __init__(
        self,
        jobs: Jobs,
        leases: Leases,
        hosts: Set[str],
        clock: Callable[[], float],
        trigger: Callable[[str, float], None],
    ) -> None:
        self._jobs = jobs
        self._leases = leases
        self._hosts = hosts
        self._clock = clock
        self._trigger = trigger

    def put(
        self, job_id: str, host: str, part: Part, received_at: float, *, by_host: bool, earliest: float | None
    ) -> PartChange:
        """Take what a host knows of a job; the same again, and what comes late, changes nothing.

        The first part of a job begins a run. ``by_host``: the host's own token is used. For the age of the job a
        launch counts as not before ``earliest``, in seconds since the Unix epoch; None: as its arrival says.

        Raises NotFound for an unknown host, Invalid for a part that contradicts itself, NotAllowed for the job of
        another user, and Conflict where the part contradicts the job, or where there is no room.
        """
        self._require_host(host)
        if part.hosts and host not in part.hosts:
            problem = f"{host} is not among them, whose part this is; name hosts as the settings do, or leave them out"
            raise Invalid([("hosts", problem)])
        job = self._jobs.get(job_id)
        began = self._began(host, part)
        counted = began if earliest is None else max(began, min(earliest, self._clock()))
        own = HostPart(host, part, counted, by_host)
        if job is not None and _is_known_late(job, own, began):
            check_room(self._jobs.live())
            self._jobs.reopen(job)
        if job is None or job.ended_at is not None:
            return self._start(job_id, job, own, began, received_at)
        if job.parts is None:
            _check_whole(job, own)
            return PartChange.REGISTERED_WHOLE
        try:
            return self._merge(job, job.parts, own, began, received_at)
        finally:
            # A part that is refused does not reopen its job.
            end_if_over(self._jobs, job)

    def preview(self, job_id: str, host: str, part: Part) -> PartsOfJob:
        """Returns the parts that a job would have with this one, for a check of what they declare together."""
        job = self._jobs.get(job_id)
        others = job.parts if job is not None and job.ended_at is None and job.parts is not None else ()
        parts = PartsOfJob(each for each in others if each.host != host)
        # The user is checked: it must be that of the part, whatever the others say.
        parts.put(HostPart(host, part._replace(is_first=True), self._clock()))
        return parts

    def count(self, job_id: str) -> int:
        """Returns how many parts a job has."""
        job = self._jobs.get(job_id)
        return len(job.parts) if job is not None and job.parts is not None else 0

    def find(self, job_id: str, host: str) -> HostPart:
        """Returns the part of a host in a job; raises NotFound."""
        job = self._jobs.find(job_id)
        if job.parts is None or (part := job.parts.get(host)) is None or not job.parts.has(host):
            raise NotFound(f"job {job_id} has no part of host {host}")
        return part

    def remove(self, job_id: str, host: str, arrival: float, received_at: float) -> None:
        """Forget the part of a host; the job ends where it runs nowhere else.

        ``arrival`` is that of the launch which is meant: the part of a later launch stays. So does one that is over.
        Raises NotFound for a job without such a part, and Conflict for a job that was registered whole.
        """
        job = self._jobs.find(job_id)
        if job.parts is None:
            raise Conflict(f"job {job_id} was registered whole; DELETE /v1/jobs/{job_id} removes it")
        known = job.parts.get(host)
        if known is None:
            raise NotFound(f"job {job_id} has no part of host {host}")
        if job.ended_at is not None or not known.is_running or not is_meant(known, arrival):
            return
        # The last one stays: it says where the job has run.
        over = replace(known, over="removed" if len(job.parts) > 1 else "ended", over_at=self._clock())
        self._jobs.put_part(job, over)
        if end_if_over(self._jobs, job):
            self._trigger(Trigger.END, received_at)
        else:
            self._trigger(Trigger.REGISTRATION, received_at)

    def _start(
        self, job_id: str, ended: JobRecord | None, own: HostPart, began: float, received_at: float
    ) -> PartChange:
        """Begin a run of a job that does not run, unless the message is of a launch that is over."""
        known = ended.parts.get(own.host) if ended is not None and ended.parts is not None else None
        if known is not None and known.part.arrival is not None and own.part.arrival is not None:
            before = replace(known, over="ended", over_at=ended.ended_at if ended is not None else None)
            if launch_of(own.part, before, began) is Launch.LATE:
                return PartChange.UNCHANGED
        self._check_new(job_id, own, began)
        check_room(self._jobs.live())
        self._check_share(own, None)
        parts = PartsOfJob([own])
        registrar = own.host if own.by_host else None
        self._jobs.start_run(
            job_id, join(parts), arrival=own.began, now=self._clock(), registrar=registrar, parts=parts
        )
        self._trigger(Trigger.REGISTRATION, received_at)
        return PartChange.CREATED

    def _check_new(self, job_id: str, own: HostPart, began: float) -> None:
        """Raises Conflict for a part of a run that is over, or of a job that waits for hosts."""
        if self._jobs.is_waiting_for_host(job_id):
            raise Conflict(f"job {job_id} waits for hosts that are not in the settings; DELETE /v1/jobs/{job_id}")
        over_at = self._jobs.over_at(job_id)
        if over_at is None:
            return
        problem = f"job {job_id} has ended, or was removed; the part of a new launch says when that began"
        if own.part.arrival is None:
            raise Conflict(problem, [("arrival", "missing")])
        if not is_after(began, over_at):
            raise Conflict(problem, [("arrival", f"{over_at - began:.1f} s before the end of the run before")])

    def _merge(self, job: JobRecord, parts: PartsOfJob, own: HostPart, began: float, received_at: float) -> PartChange:
        """Take the part of a host in a job that runs."""
        known = parts.get(own.host)
        launch = launch_of(own.part, known, began)
        if launch is Launch.UNTOLD:
            problem = f"the part of {own.host} in job {job.id} has ended; the part of a new launch says when that began"
            raise Conflict(problem, [("arrival", "missing")])
        if launch is Launch.LATE or (launch is Launch.SAME and known is not None and known.part == own.part):
            return PartChange.UNCHANGED
        verdict = verdict_on(job.id, parts, own.host, own.part, self._leases.is_silent)
        if verdict.problem is not None:
            if verdict.problem.is_of_another_user:
                raise NotAllowed(verdict.problem.text)
            raise Conflict(verdict.problem.text, [(verdict.problem.field, verdict.problem.text)])
        self._check_share(own, job)
        for host in verdict.demoted:
            self._demote(job, parts.get(host))
        if launch is Launch.SAME and known is not None:
            own = replace(own, began=known.began)
        self._jobs.put_part(job, own)
        self._trigger(Trigger.REGISTRATION, received_at)
        return PartChange.CREATED if launch is Launch.NEW else PartChange.REPLACED

    def _demote(self, job: JobRecord, part: HostPart | None) -> None:
        """Take back what a silent host has said of where the job runs. Its part stays."""
        if part is not None:
            self._jobs.put_part(job, replace(part, part=part.part._replace(is_first=False, hosts=NO_HOSTS)))

    def _check_share(self, own: HostPart, job: JobRecord | None) -> None:
        if own.by_host:
            check_share_of_parts(own, job, self._jobs)

    def _began(self, host: str, part: Part) -> float:
        """Returns when a part's launch began by the controller's clock, now at the latest."""
        now = self._clock()
        if part.arrival is None:
            return now
        return min(part.arrival + (self._leases.clock_offset(host) or 0.0), now)

    def _require_host(self, host: str) -> None:
        if host not in self._hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(self._hosts)[:20]) or 'none'}")


def _is_known_late(job: JobRecord, own: HostPart, began: float) -> bool:
    """Returns whether a job has ended on all hosts that were known, and a part shows that it ran on one more.

    So it is where the agents' messages of a time without a controller come one host after the other.
    """
    if job.ended_at is None or job.parts is None or not job.parts.is_over or own.part.arrival is None:
        return False
    return job.parts.get(own.host) is None and not is_after(began, job.ended_at)


def _check_whole(job: JobRecord, own: HostPart) -> None:
    """Raises Conflict for the part of a job that was registered whole, and that is not of this host and user."""
    if own.host not in job.hosts or own.part.user not in (job.spec.user, None):
        raise Conflict(
            f"job {job.id} was registered whole, with other hosts or another user; give this one another name"
        )


def end_if_over(jobs: Jobs, job: JobRecord) -> bool:
    """End a job that runs on no host any more; returns whether it has ended so."""
    if job.parts is None or not job.parts.is_over or job.ended_at is not None:
        return False
    jobs.end(job, job.parts.over_at)
    return True
