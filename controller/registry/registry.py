"""What is known now: jobs, stages, hosts and their leases, merged from what operators and hosts tell.

All merges are monotone and idempotent, so reports may come twice, late or in another order. Nothing here talks to
anything: the clock, the journal and who listens for triggers are handed in. Every public call either changes
everything that it means to, or raises a refusal and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from enum import StrEnum

from controller.declared.batch import Batch, JobTold
from controller.declared.declared import Declared
from controller.declared.job_flows import repeated_ports, unknown_hosts
from controller.declared.owners import Owners
from controller.journal.bodies import GraveBody, StageBody
from controller.journal.store import Store
from controller.model import Host, Job, Snapshot, Stage, Switch
from controller.pieces import whole
from controller.refusals import Conflict, Invalid, NotFound
from controller.registry.host_record import HostRecord
from controller.registry.job_record import JobRecord
from controller.registry.job_view import JobView
from controller.registry.records import dump, load, remove_job, save_body, save_host, save_job, save_seen
from controller.registry.report_merge import Merge
from controller.registry.shares import make_room
from controller.registry.triggers import Cause
from controller.registry.watch import Watch
from controller.wire import HostReport, JobSpec, ReportAnswer, StageSpec, Threshold

LOG = logging.getLogger("trainyard.registry")
MAX_JOBS = 10_000
MAX_STAGES = 10_000
MAX_ENDED = 1_000
FORGET_ENDED_SECONDS = 3600.0
FORGET_LOST_SECONDS = 86400.0
MAX_GRAVES = 10_000
FORGET_GRAVE_SECONDS = 86400.0
EARLY_SECONDS = 1.0
"""A job may be told of so long before its registration comes; its first reports still count."""
TELLING_SECONDS = 45.0
"""A new agent has so long to tell of the connections that the one before it found; then those are forgotten.

It says that it lives before it has read a job file, knows the hosts' addresses and has looked at a socket, and what is
lost on the way it tells again within 30 s.
"""
Listener = Callable[[str, float], None]


class Change(StrEnum):
    """What a PUT did."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class Registry:
    """Everything known. ``clock`` gives seconds since the epoch; ``period`` is told to hosts in every answer.

    ``steady``: a clock that no one sets, for leases; ``clock`` if None.
    """

    def __init__(
        self,
        hosts: Mapping[str, Host],
        store: Store,
        clock: Callable[[], float],
        *,
        steady: Callable[[], float] | None = None,
        lease_seconds: float = 30.0,
        period_seconds: float = 5.0,
    ) -> None:
        self.hosts = dict(hosts)
        self.lease_seconds = lease_seconds
        self.period_seconds = period_seconds
        self._store = store
        self._clock = clock
        self._steady = steady or clock
        state = load(store.contents(), self.hosts, self._steady())
        self._jobs, self._stages, self._agents = state.jobs, state.stages, state.agents
        self._parked, self._graves = state.parked, state.graves
        for job in self._parked.values():
            gone = ", ".join(sorted(job.hosts - self.hosts.keys()))
            LOG.warning(
                "job %s waits in the journal: hosts %s are not in the settings; DELETE removes it", job.id, gone
            )
        store.add_source(lambda batch: dump(state, batch))
        self._listeners: list[Listener] = []
        self._watch = Watch()
        self._lost = {job.id for job in self._live() if job.lost_since is not None}
        self._owners = Owners()
        for job in self._live():
            self._owners.add(job.id, job.spec.claims)

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener(reason, received_at)`` at every change that cannot wait for the period."""
        self._listeners.append(listener)

    # Jobs and stages ---------------------------------------------------------------------------------------------

    def put_job(
        self, job_id: str, spec: JobSpec | Declared, received_at: float, registrar: str | None = None
    ) -> Change:
        """Register a job or replace its spec; the same spec again changes nothing.

        A spec for a job that has ended or was removed starts a new run. ``registrar``: the host whose token is used;
        None: an operator. Raises Invalid, or Conflict where another job claims the same traffic, or where the host's
        share of the room is used up.
        """
        declared = spec if isinstance(spec, Declared) else Declared.of(spec)
        return whole(self.put_job_in_steps(job_id, declared, received_at, registrar))

    def put_job_in_steps(
        self, job_id: str, spec: Declared, received_at: float, registrar: str | None = None
    ) -> Generator[None, None, Change]:
        """As ``put_job``; yields where others may go on. The job is registered, or refused, before the first time."""
        old = self._jobs.get(job_id)
        live = old if old is not None and old.ended_at is None else None
        if live is not None and live.spec == spec:
            return Change.UNCHANGED
        self._check(spec)
        now = self._clock()
        # A host's clock may be ahead; a job that arrives in the future would never age.
        arrival = min(spec.arrival, now) if spec.arrival is not None else None
        if live is None:
            self._check_room()
        giving_way = make_room(job_id, spec, registrar, self._jobs.values())
        self._check_claims(job_id, spec, registrar)
        for ended in giving_way:
            self._drop(ended)
        if live is None:
            new = self._new_run(job_id, spec, now if arrival is None else arrival, now)
            new.registrar = registrar
            self._jobs.pop(job_id, None)
            self._parked.pop(job_id, None)
            if self._graves.pop(job_id, None) is not None:
                self._store.remove("grave", job_id)
            self._jobs[job_id] = new
            self._store.replace_points(job_id, ())
            self._watch.forget(job_id)
        else:
            if live.spec.metric != spec.metric:
                live.forget_history()
                self._store.replace_points(job_id, ())
            live.arrival = arrival if arrival is not None else live.arrival
            self._owners.remove(job_id, live.spec.claims)
            live.set_spec(spec)
            live.registrar = registrar
            if live.leave_hosts():
                save_seen(self._store, live)
        self._owners.add(job_id, spec.claims)
        save_job(self._store, self._jobs[job_id])
        self._trigger(Cause.REGISTRATION, received_at)
        yield from self._take_from_others(job_id, spec)
        return Change.CREATED if live is None else Change.REPLACED

    def _take_from_others(self, job_id: str, spec: Declared) -> Generator[None, None, None]:
        """What a job declares goes before what was found by chance."""
        for other in self._live():
            if other.id != job_id and not spec.hosts.isdisjoint(other.hosts):
                # Whoever was removed meanwhile has no connections any more, and a new run of the same name has its own.
                is_there = self._jobs.get(other.id) is other
                if is_there and other.give_up(lambda flow: self._owners.owner(flow) == job_id):
                    save_seen(self._store, other)
                yield

    def delete_job(self, job_id: str, received_at: float) -> None:
        """Forget a job, also one that only waits in the journal; raises NotFound."""
        parked = self._parked.pop(job_id, None)
        if parked is not None:
            self._bury(parked)
            return
        job = self._find(job_id)
        self._drop(job)
        if job.ended_at is None:
            self._trigger(Cause.REMOVAL, received_at)

    def put_stage(self, stage_id: str, spec: StageSpec, received_at: float) -> Change:
        """Say which jobs are a stage; the same again changes nothing.

        Raises Invalid for jobs that are not there, Conflict for one that is in another stage.
        """
        return whole(self.put_stage_in_steps(stage_id, spec, received_at))

    def put_stage_in_steps(self, stage_id: str, spec: StageSpec, received_at: float) -> Generator[None, None, Change]:
        """As ``put_stage``; yields where others may go on, once the stage is as it should be."""
        wanted = set(spec.jobs)
        members = {job.id for job in self._jobs.values() if job.stage == stage_id}
        created = stage_id not in self._stages and not members
        if stage_id in self._stages and wanted == members:
            return Change.UNCHANGED
        if errors := [
            (f"jobs.{i}", f"unknown job {job!r}; register it first, or name the stage in its own spec")
            for i, job in enumerate(spec.jobs)
            if job not in self._jobs
        ]:
            raise Invalid(errors)
        for i, job_id in enumerate(spec.jobs):
            other = self._jobs[job_id].stage
            if other is not None and other != stage_id and self._jobs[job_id].ended_at is None:
                problem = f"job {job_id} is in stage {other} already; end that stage first"
                raise Conflict(problem, [(f"jobs.{i}", problem)])
        if stage_id not in self._stages and len(self._stages) >= MAX_STAGES:
            raise Conflict(f"there are {MAX_STAGES} stages already, which is the most; end some")
        self._stages.add(stage_id)
        self._store.put("stage", stage_id, StageBody().model_dump_json())
        moved = [self._jobs[job_id] for job_id in sorted(members ^ wanted)]
        for job in moved:
            job.set_stage(stage_id if job.id in wanted else None)
        self._trigger(Cause.STAGE_START, received_at)
        yield from self._note(moved)
        return Change.CREATED if created else Change.REPLACED

    def delete_stage(self, stage_id: str, received_at: float) -> None:
        """End a stage; its jobs go on without one. Raises NotFound."""
        whole(self.delete_stage_in_steps(stage_id, received_at))

    def delete_stage_in_steps(self, stage_id: str, received_at: float) -> Generator[None, None, None]:
        """As ``delete_stage``; yields where others may go on, once there is no stage any more."""
        members = [self._jobs[job_id] for job_id in self.stage_jobs(stage_id)]
        self._stages.discard(stage_id)
        self._store.remove("stage", stage_id)
        for job in members:
            job.set_stage(None)
        self._trigger(Cause.STAGE_END, received_at)
        yield from self._note(members)

    def stage_jobs(self, stage_id: str) -> tuple[str, ...]:
        """The jobs of a stage; raises NotFound. One that only jobs name is there as long as one of them is."""
        members = tuple(sorted(job.id for job in self._jobs.values() if job.stage == stage_id))
        if stage_id not in self._stages and not members:
            raise NotFound(f"there is no stage {stage_id}")
        return members

    def stage_fillers(self, stage_id: str | None, but: str) -> frozenset[str | None]:
        """Whose the jobs of a stage are that run, one of them left out: hosts by their tokens, None for operators.

        A stage that was put is an operator's too, and so is the place of a job in one.
        """
        if stage_id is None:
            return frozenset()
        whose = {job.registrar for job in self._live() if job.stage == stage_id and job.id != but}
        mine = self._jobs.get(but)
        is_put = stage_id in self._stages or (mine is not None and mine.ended_at is None and mine.stage in self._stages)
        return frozenset(whose | ({None} if is_put else set()))

    def job_state(self, job_id: str, service_class: int | None = None) -> JobView:
        """A job as the API shows it; raises NotFound."""
        return self._find(job_id).state(service_class)

    def job_states(self, classes: Mapping[str, int]) -> Iterator[JobView]:
        """All jobs, those that ended lately included; each as it is when it is asked for."""
        return (job.state(classes.get(job.id)) for job in list(self._jobs.values()))

    def live_job(self, job_id: str) -> Job | None:
        """A job that runs, as the policies see it; None where there is none."""
        job = self._jobs.get(job_id)
        return job.value() if job is not None and job.ended_at is None else None

    def job_hosts(self, job_id: str) -> frozenset[str] | None:
        """The hosts that a job involves; None where there is no such job."""
        job = self._jobs.get(job_id) or self._parked.get(job_id)
        return job.hosts if job is not None else None

    def host_alive(self, host: str) -> bool:
        """Whether the host's lease runs."""
        agent = self._agents.get(host)
        return agent is not None and agent.alive(self._steady(), self.lease_seconds)

    def acknowledging(self) -> frozenset[str]:
        """The hosts that mark acknowledgements, as far as their leases run."""
        now = self._steady()
        return frozenset(
            host
            for host, agent in self._agents.items()
            if agent.marks_acknowledgements and agent.alive(now, self.lease_seconds)
        )

    # Reports -----------------------------------------------------------------------------------------------------

    def report(self, host: str, report: HostReport, received_at: float) -> ReportAnswer:
        """Merge one batch of a host; what cannot be taken is refused in the answer, the rest is taken.

        Raises NotFound for a host that is not in the settings.
        """
        return whole(self.report_in_steps(host, Batch.of(report), received_at))

    def report_in_steps(self, host: str, batch: Batch, received_at: float) -> Generator[None, None, ReportAnswer]:
        """As ``report``; yields where others may go on. Two batches of one host must not be merged beside each other.

        The journal has the batch as taken only after all that it brought.
        """
        if host not in self.hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(self.hosts)[:20]) or 'none'}")
        now = self._clock()
        agent = self._agents.setdefault(host, HostRecord())
        agent.last_seen = self._steady()
        is_new = agent.take(batch.session, batch.seq, batch.sent_at, now)
        if is_new and batch.session == agent.session:
            agent.marks_acknowledgements = batch.marks_acknowledgements
        merge = Merge(
            host,
            batch,
            is_present=batch.session == agent.session,
            offset=agent.clock.offset,
            now=now,
            received_at=received_at,
            jobs=self._jobs,
            hosts=self.hosts.keys(),
            owner=self._owners.owner,
            end=self._end,
            store=self._store,
            watch=self._watch,
        )
        if is_new:
            yield from merge.in_steps()
        reasons = list(merge.reasons)
        if self._return_lost(host, merge.told):
            reasons.append(Cause.RETURN)
        for reason in dict.fromkeys(reasons):
            self._trigger(reason, received_at)
        save_host(self._store, host, agent)
        urgent = yield from self._urgent(host, batch.jobs)
        return ReportAnswer.model_construct(
            status="taken" if is_new else "duplicate",
            refused=tuple(merge.refused),
            left_out=tuple(merge.left_out),
            lease_seconds=self.lease_seconds,
            period_seconds=self.period_seconds,
            urgent=urgent,
            held=tuple(job.id for job in self._live() if job.told_by.get(host)) if batch.seq == 1 else (),
        )

    def _urgent(self, host: str, parts: Iterable[JobTold]) -> Generator[None, None, dict[str, Threshold]]:
        found = {}
        for part in parts:
            job = self._jobs.get(part.job)
            # Whose token is one host's must not learn of the jobs of others.
            if job is not None and host in job.hosts and job.ended_at is None:
                threshold = self._watch.threshold(job)
                if threshold is not None:
                    found[job.id] = threshold
            yield
        return found

    # Time --------------------------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Let leases run out, and forget what ended long ago."""
        whole(self.expire_in_steps())

    def expire_in_steps(self) -> Generator[None, None, None]:
        """As ``expire``; yields where others may go on."""
        now, steady = self._clock(), self._steady()
        for job in self._live():
            yield
            if job.ended_at is not None or self._jobs.get(job.id) is not job:
                continue  # meanwhile
            if job.lost_since is None and job.is_lost(self._agents, steady, self.lease_seconds):
                job.lost_since = now
                self._lost.add(job.id)
                save_job(self._store, job)
                silent = ", ".join(sorted(job.witnesses)[:20])
                LOG.warning("job %s is lost: nothing was heard of %s for %g s", job.id, silent, self.lease_seconds)
            if job.lost_since is not None and now - job.lost_since > FORGET_LOST_SECONDS:
                self._end(job, now)
            self._forget_found(job, steady)
        ended = sorted((job.ended_at, job.id) for job in self._jobs.values() if job.ended_at is not None)
        for i, (ended_at, job_id) in enumerate(ended):
            if now - ended_at > FORGET_ENDED_SECONDS or len(ended) - i > MAX_ENDED:
                self._drop(self._jobs[job_id])  # nobody went on since they were listed
        while self._graves and now - next(iter(self._graves.values())).gone_at > FORGET_GRAVE_SECONDS:
            self._forget_grave()

    def set_watch(self, watch: Mapping[str, float], as_of: float) -> None:
        """Trigger once when a job's metric crosses its value; ``as_of`` is the time of the snapshot behind it."""
        self._watch.set(watch)
        for job_id in watch:
            job = self._jobs.get(job_id)
            # A crossing that was told while the plan was being made would otherwise wait for the period.
            if job is not None and (job.last_report or 0.0) > as_of and self._watch.crosses(job, None):
                self._trigger(Cause.TARGET_CROSSED, job.received_at)

    def snapshot(self, now: float, *, classes: int, period: float, switches: Iterable[Switch] = ()) -> Snapshot:
        """What is known, for a plan: jobs that run and are not lost, by arrival."""
        return whole(self.snapshot_in_steps(now, classes=classes, period=period, switches=switches))

    def snapshot_in_steps(
        self, now: float, *, classes: int, period: float, switches: Iterable[Switch] = ()
    ) -> Generator[None, None, Snapshot]:
        """As ``snapshot``; yields where others may go on. What changes meanwhile may be in it or not."""
        jobs = sorted((job for job in self._live() if job.lost_since is None), key=lambda job: (job.arrival, job.id))
        stages: dict[str, list[str]] = {stage: [] for stage in self._stages}
        values = []
        for job in jobs:
            values.append(job.value())
            if job.stage is not None:
                stages.setdefault(job.stage, []).append(job.id)
            yield
        return Snapshot(
            now=now,
            hosts=self.hosts,
            jobs=tuple(values),
            classes=classes,
            stages=tuple(Stage(stage, tuple(members)) for stage, members in sorted(stages.items())),
            switches=tuple(switches),
            period=period,
            acknowledging=self.acknowledging(),
        )

    # Inside ------------------------------------------------------------------------------------------------------

    def _trigger(self, reason: str, received_at: float) -> None:
        for listener in self._listeners:
            listener(reason, received_at)

    def _live(self) -> list[JobRecord]:
        return [job for job in self._jobs.values() if job.ended_at is None]

    def _find(self, job_id: str) -> JobRecord:
        if job_id not in self._jobs:
            raise NotFound(f"there is no job {job_id}")
        return self._jobs[job_id]

    def _new_run(self, job_id: str, spec: Declared, arrival: float, now: float) -> JobRecord:
        """A job's record, which knows when what came before it was over, as far as that is remembered."""
        run, since = 1, None
        old = self._jobs.get(job_id) or self._parked.get(job_id)
        if old is not None:
            run, since = old.run + 1, old.ended_at if old.ended_at is not None else now
        elif (grave := self._graves.get(job_id)) is not None:
            run, since = grave.run + 1, grave.gone_at
        if since is not None:
            since = max(since, arrival - EARLY_SECONDS)
        return JobRecord(job_id, spec, run=run, arrival=arrival, registered_at=now, since=since)

    def _return_lost(self, host: str, told: Collection[str]) -> bool:
        """Take back the lost jobs that a host which was heard of just now speaks for; whether there were such.

        One that an agent follows must be among those that it has told of: a new agent may have to tell its end.
        """
        back = [
            job
            for job in map(self._find, self._lost)
            if host in job.witnesses and (job.id in told or not job.told_by.get(host))
        ]
        for job in back:
            job.lost_since = None
            self._lost.discard(job.id)
            save_job(self._store, job)
        return bool(back)

    def _end(self, job: JobRecord, now: float) -> None:
        if job.ended_at is None:
            self._owners.remove(job.id, job.spec.claims)
        job.ended_at = now
        job.lost_since = None
        self._lost.discard(job.id)
        save_job(self._store, job)

    def _forget_found(self, job: JobRecord, steady: float) -> None:
        """Forget connections that agents found who are gone: silent for a lease, or others are in their place.

        An agent that was only away tells everything again by itself.
        """
        gone = [host for host, session in job.traffic.tellers.items() if self._is_gone(host, session, steady)]
        if job.traffic.drop(gone):
            job.found_changed()
            save_seen(self._store, job)
            where = ", ".join(sorted(gone)[:20])
            LOG.info("job %s: what was found on %s is forgotten; its agent is gone", job.id, where)

    def _is_gone(self, host: str, session: str, steady: float) -> bool:
        agent = self._agents.get(host)
        if agent is None or not agent.alive(steady, self.lease_seconds):
            return True
        return session != agent.session and steady - agent.session_since > TELLING_SECONDS

    def _note(self, jobs: Iterable[JobRecord]) -> Generator[None, None, None]:
        """Note in the journal what changes seldom of jobs."""
        for job in jobs:
            if self._jobs.get(job.id) is job:
                save_body(self._store, job)
            yield

    def _drop(self, job: JobRecord) -> None:
        del self._jobs[job.id]
        self._lost.discard(job.id)
        if job.ended_at is None:
            self._owners.remove(job.id, job.spec.claims)
        self._bury(job)

    def _bury(self, job: JobRecord) -> None:
        """Remove a job from the journal, and remember that it was there: late reports of it are not the next one's."""
        gone_at = job.ended_at if job.ended_at is not None else self._clock()
        self._graves[job.id] = grave = GraveBody(run=job.run, gone_at=gone_at)
        remove_job(self._store, job.id, grave)
        if len(self._graves) > MAX_GRAVES:
            self._forget_grave()

    def _forget_grave(self) -> None:
        job_id, _ = self._graves.popitem(last=False)
        self._store.remove("grave", job_id)

    def _check_room(self) -> None:
        if len(self._live()) >= MAX_JOBS:
            raise Conflict(f"there are {MAX_JOBS} jobs already, which is the most; let some end, or remove some")

    def _check(self, spec: Declared) -> None:
        errors = [] if spec.hosts <= self.hosts.keys() else unknown_hosts(spec, self.hosts)
        errors += repeated_ports(spec)
        if errors:
            raise Invalid(errors)

    def _check_claims(self, job_id: str, spec: Declared, registrar: str | None) -> None:
        """Raises Conflict where another job claims the same traffic; of several the one that came first is named."""
        clashing = self._owners.clashes(spec.claims) - {job_id}
        for other in [job for job in self._live() if job.id in clashing] if clashing else ():
            if (clash := spec.claims.conflict(other.spec.claims, spec)) is not None:
                field, both = clash
                # A host's token must not learn what the jobs of other hosts are called.
                is_known = registrar is None or registrar in other.hosts
                whose = f"jobs {job_id} and {other.id}" if is_known else f"job {job_id} and another one"
                problem = f"{whose} both claim {both}; traffic must belong to one job"
                raise Conflict(problem, [(field, problem)])
