"""The jobs that the registry has: those that run, those that ended lately, and what is remembered of the others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from itertools import chain

from controller.code_points import CodePoints
from controller.declared.declared import Declared
from controller.declared.owners import Owners
from controller.declared.parts.host_part import HostPart
from controller.declared.parts.joined import join
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.journal.bodies import TombstoneBody
from controller.journal.store import Store
from controller.model import Progress
from controller.pieces import Steps
from controller.refusals import NotFound
from controller.registry import records
from controller.registry.dscps import Dscps
from controller.registry.families import KeptFamilies
from controller.registry.job.record import JobRecord

JobListener = Callable[[str, str | None], None]
"""Is called with the id of a job and its user."""
MAX_ENDED = 1_000
FORGET_ENDED_SECONDS = 3600.0
MAX_TOMBSTONES = 10_000
FORGET_TOMBSTONE_SECONDS = 86400.0
EARLY_SECONDS = 1.0
"""The reports that come at most this long before a job's registration still count."""


class Jobs:
    """Job records by id, with the claims of those that run. Each change is noted in the journal.

    Jobs on hosts that the settings do not have wait for these hosts in the journal. A tombstone remembers a job that
    was removed, so that late reports of it do not count for the next run. At its end the run of a job is kept in
    ``families``. Where ``points`` say that jobs have DSCPs of their own, each run has one.
    """

    def __init__(
        self, state: records.State, store: Store, clock: Callable[[], float], points: CodePoints | None = None
    ) -> None:
        self._records = state.jobs
        self._waiting_for_host = state.waiting_for_host
        self._tombstones = state.tombstones
        self._store = store
        self._clock = clock
        self._listeners: list[JobListener] = []
        self._lost = {job.id for job in self.live() if job.lost_since is not None}
        self.owners = Owners()
        self.families = KeptFamilies(state.families, store)
        self.dscps = Dscps(points, state.freed_dscps, self._runs, store=store, clock=clock)
        for job in self.live():
            self.owners.add(job.id, job.spec.claims)
        for job in self.dscps.settle():
            records.save_body(store, job)

    def __iter__(self) -> Iterator[JobRecord]:
        """All jobs with a record, those that ended lately included."""
        return iter(self._records.values())

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._records

    def subscribe(self, listener: JobListener) -> None:
        """Call ``listener`` at each change of a job that others may see, reports and its removal included.

        It is called for each job of each report, in the middle of a change: it may note the job, and no more.
        """
        self._listeners.append(listener)

    def get(self, job_id: str) -> JobRecord | None:
        """Returns a job; None where there is none."""
        return self._records.get(job_id)

    def find(self, job_id: str) -> JobRecord:
        """Returns a job; raises NotFound."""
        if job_id not in self._records:
            raise NotFound(f"there is no job {job_id}")
        return self._records[job_id]

    def has(self, job: JobRecord) -> bool:
        """Returns whether a record has been neither removed nor replaced by that of another run."""
        return self._records.get(job.id) is job

    def live(self) -> list[JobRecord]:
        """Returns the jobs that have not ended."""
        return [job for job in self._records.values() if job.ended_at is None]

    def waiting_for_host(self) -> tuple[JobRecord, ...]:
        """Returns the jobs that wait in the journal."""
        return tuple(self._waiting_for_host.values())

    def is_waiting_for_host(self, job_id: str) -> bool:
        """Returns whether a job waits in the journal."""
        return job_id in self._waiting_for_host

    def admit_waiting(self, hosts: Set[str]) -> list[str]:
        """Let the waiting jobs whose hosts are all among ``hosts`` run again. Returns their ids."""
        admitted = [job for job in self._waiting_for_host.values() if job.hosts <= hosts]
        for job in admitted:
            del self._waiting_for_host[job.id]
            self._records[job.id] = job
            if job.ended_at is None:
                self.owners.add(job.id, job.spec.claims)
            if job.lost_since is not None:
                self._lost.add(job.id)
            self._tell(job)
        return [job.id for job in admitted]

    def hosts_of(self, job_id: str) -> frozenset[str] | None:
        """Returns the hosts of a job, also of one that waits in the journal; None where there is no such job."""
        job = self._records.get(job_id) or self._waiting_for_host.get(job_id)
        return job.hosts if job is not None else None

    def user_of(self, job_id: str) -> str | None:
        """Returns the user of a job, also of one that waits in the journal; None where none is named or known."""
        job = self._records.get(job_id) or self._waiting_for_host.get(job_id)
        return job.spec.user if job is not None else None

    def over_at(self, job_id: str) -> float | None:
        """Returns when the last run of a job was over, as far as that is remembered; None: it runs, or never ran."""
        if (job := self._records.get(job_id)) is not None:
            return job.ended_at
        tombstone = self._tombstones.get(job_id)
        return tombstone.gone_at if tombstone is not None else None

    def links_of(self, host: str) -> int:
        """Returns how many links a host has named, over all jobs."""
        return sum(job.connections.found.links_of(host) for job in self._records.values())

    # Registration and removal ------------------------------------------------------------------------------------

    def start_run(
        self,
        job_id: str,
        spec: Declared,
        *,
        arrival: float | None,
        now: float,
        registrar: str | None,
        parts: PartsOfJob | None = None,
    ) -> None:
        """Add a new run of a job, which claims its traffic. ``arrival`` of None stands for ``now``.

        ``parts``: those that ``spec`` joins; None: the job is registered whole.
        """
        job = self._new_run(job_id, spec, now if arrival is None else arrival, now)
        job.registrar, job.parts = registrar, parts
        if (old := self._records.pop(job_id, None)) is not None:
            records.remove_parts(self._store, old)
        if (waiting := self._waiting_for_host.pop(job_id, None)) is not None:
            self._give_up_waiting(waiting)
            records.remove_parts(self._store, waiting)
        if self._tombstones.pop(job_id, None) is not None:
            self._store.remove("grave", job_id)
        self._records[job_id] = job
        self.dscps.begin(job)
        self._store.replace_points(job_id, ())
        self.owners.add(job_id, spec.claims)
        records.save_job(self._store, job)
        for host in job.parts.remembered if job.parts is not None else ():
            records.save_part(self._store, job, host)
        self._tell(job)

    def replace_spec(self, job: JobRecord, spec: Declared, *, arrival: float | None, registrar: str | None) -> None:
        """Give a job that runs another spec, as a whole. ``arrival`` of None leaves it as it is."""
        records.remove_parts(self._store, job)
        job.parts = None
        if job.spec.unit != spec.unit:
            job.count_otherwise()
        if job.spec.metric != spec.metric or job.spec.unit != spec.unit:
            job.forget_history()
            self._store.replace_points(job.id, ())
        job.arrival = arrival if arrival is not None else job.arrival
        self.owners.remove(job.id, job.spec.claims)
        job.set_spec(spec)
        job.registrar = registrar
        if job.leave_hosts():
            records.save_seen(self._store, job)
        self.owners.add(job.id, spec.claims)
        records.save_job(self._store, job)
        self._tell(job)

    def put_part(self, job: JobRecord, part: HostPart) -> None:
        """Take the part of a host in a job that is joined of parts, and declare anew what they say together.

        Where it is the first that says where rank 0 runs, the progress so far is not that of rank 0, and is dropped.
        """
        assert job.parts is not None
        is_first_of_all = part.part.is_first and not job.parts.had_first
        lists, arrival = set(job.parts.lists), min(job.arrival, part.began)
        job.parts.put(part)
        records.save_part(self._store, job, part.host)
        if job.parts:
            self._join(job, is_other_progress=is_first_of_all)
        if arrival != job.arrival or lists != set(job.parts.lists):
            job.arrival = arrival
            records.save_body(self._store, job)
        self._tell(job)

    def _join(self, job: JobRecord, *, is_other_progress: bool) -> None:
        assert job.parts is not None
        spec = join(job.parts)
        if job.spec.unit != spec.unit:
            job.count_otherwise()
        is_other_progress &= len(job.history) > 0
        if is_other_progress or job.spec.metric != spec.metric or job.spec.unit != spec.unit:
            job.forget_history()
            self._store.replace_points(job.id, ())
        hosts = job.hosts
        if spec != job.spec:
            job.set_spec(spec)
        if not hosts <= job.hosts and job.leave_hosts():
            records.save_seen(self._store, job)

    def release_flows(self, job_id: str, spec: Declared) -> Steps[None]:
        """Take connections that other jobs were seen with, but that ``spec`` declares, away from those jobs."""
        for other in self.live():
            if other.id != job_id and not spec.hosts.isdisjoint(other.hosts):
                # A job that was removed meanwhile has no connections, and a new run of that name has its own.
                if self.has(other) and other.give_up(lambda flow: self.owners.owner(flow) == job_id):
                    records.save_seen(self._store, other)
                yield

    def remove(self, job: JobRecord) -> None:
        """Remove a job, and leave a tombstone."""
        del self._records[job.id]
        self._lost.discard(job.id)
        if job.ended_at is None:
            self.owners.remove(job.id, job.spec.claims)
            self.dscps.end(job)
            job.is_given_up = job.lost_since is not None
            self.families.keep(job, self._clock())
        self._bury(job)
        self._tell(job)

    def remove_waiting(self, job_id: str) -> bool:
        """Remove a job that waits for its host; returns whether there was one."""
        job = self._waiting_for_host.pop(job_id, None)
        if job is not None:
            self._give_up_waiting(job)
            self._bury(job)
        return job is not None

    # What becomes of a run ---------------------------------------------------------------------------------------

    def end(self, job: JobRecord, ended_at: float, *, is_given_up: bool = False) -> None:
        """End a job, which gives its claims back. ``is_given_up``: it was lost, and nobody has reported its end."""
        if job.ended_at is None:
            self.owners.remove(job.id, job.spec.claims)
            self.dscps.end(job)
        if job.parts is not None:
            job.parts.forget_lists()
        job.ended_at = ended_at
        job.is_given_up = is_given_up
        job.lost_since = None
        self._lost.discard(job.id)
        records.save_job(self._store, job)
        self.families.keep(job, ended_at)
        self._tell(job)

    def reopen(self, job: JobRecord) -> None:
        """Let a job go on that has ended because it ran on no host that was known."""
        self.dscps.go_on(job)
        job.ended_at = None
        self.owners.add(job.id, job.spec.claims)
        records.save_job(self._store, job)

    def lose(self, job: JobRecord, now: float) -> None:
        """Note that a job is lost."""
        job.lost_since = now
        self._lost.add(job.id)
        records.save_job(self._store, job)
        self._tell(job)

    def return_lost(self, host: str, reported: Collection[str]) -> bool:
        """Bring back the lost jobs that a host which was heard of just now speaks for; returns whether there were any.

        A job that an agent follows must be among those in ``reported``: a new agent may have to report its end.
        """
        back = [
            job
            for job in map(self.find, self._lost)
            if host in job.witnesses and (job.id in reported or not job.reported_by.get(host))
        ]
        for job in back:
            job.lost_since = None
            self._lost.discard(job.id)
            records.save_job(self._store, job)
            self._tell(job)
        return bool(back)

    def forget_old(self, now: float) -> None:
        """Remove the jobs that ended long ago, and the oldest tombstones."""
        ended = sorted((job.ended_at, job.id) for job in self._records.values() if job.ended_at is not None)
        for i, (ended_at, job_id) in enumerate(ended):
            if now - ended_at > FORGET_ENDED_SECONDS or len(ended) - i > MAX_ENDED:
                self.remove(self._records[job_id])
        while self._tombstones and now - next(iter(self._tombstones.values())).gone_at > FORGET_TOMBSTONE_SECONDS:
            self._forget_tombstone()

    # The journal -------------------------------------------------------------------------------------------------

    def save_bodies(self, jobs: Iterable[JobRecord]) -> Steps[None]:
        """Note in the journal what seldom changes of jobs; yields where others may go on."""
        for job in jobs:
            if self.has(job):
                records.save_body(self._store, job)
            yield

    def save_points(self, job: JobRecord, new_points: Sequence[Progress], *, is_thinned: bool) -> None:
        """Note points of progress that were merged. Those that come after the end of their job are in its run too."""
        job.rows += len(new_points)
        if self.has(job):
            records.save_points(self._store, job, new_points, is_thinned=is_thinned)
            if job.ended_at is not None and new_points:
                self.families.keep(job, job.ended_at)

    def save_tally(self, job: JobRecord) -> None:
        """Note what every report changes."""
        if self.has(job):
            records.save_tally(self._store, job)
            self._tell(job)

    def save_seen(self, job: JobRecord) -> None:
        """Note the connections that hosts found."""
        if self.has(job):
            records.save_seen(self._store, job)

    # Inside ------------------------------------------------------------------------------------------------------

    def _runs(self) -> Iterator[JobRecord]:
        return chain(self._records.values(), self._waiting_for_host.values())

    def _tell(self, job: JobRecord) -> None:
        for listener in self._listeners:
            listener(job.id, job.spec.user)

    def _new_run(self, job_id: str, spec: Declared, arrival: float, now: float) -> JobRecord:
        """Returns a record that knows when the run before it was over, as far as that is remembered."""
        run, since = 1, None
        old = self._records.get(job_id) or self._waiting_for_host.get(job_id)
        if old is not None:
            run, since = old.run + 1, old.ended_at if old.ended_at is not None else now
        elif (tombstone := self._tombstones.get(job_id)) is not None:
            run, since = tombstone.run + 1, tombstone.gone_at
        if since is not None:
            since = max(since, arrival - EARLY_SECONDS)
        return JobRecord(job_id, spec, run=run, arrival=arrival, registered_at=now, since=since)

    def _give_up_waiting(self, job: JobRecord) -> None:
        """Keep the run of a job that waited for its host, and that nobody waits for any more."""
        if job.ended_at is None:
            self.dscps.end(job)
            job.is_given_up = True
            self.families.keep(job, self._clock())

    def _bury(self, job: JobRecord) -> None:
        """Remove a job from the journal, and leave a tombstone."""
        gone_at = job.ended_at if job.ended_at is not None else self._clock()
        self._tombstones[job.id] = tombstone = TombstoneBody(run=job.run, gone_at=gone_at)
        records.remove_job(self._store, job, tombstone)
        if len(self._tombstones) > MAX_TOMBSTONES:
            self._forget_tombstone()

    def _forget_tombstone(self) -> None:
        job_id, _ = self._tombstones.popitem(last=False)
        self._store.remove("grave", job_id)
