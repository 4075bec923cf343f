"""The registry: jobs, stages and hosts, merged from what operators and hosts report.

All merges are monotone and idempotent, so reports may come twice, late or in another order. Nothing here talks to
anything: the clock, the journal and the listeners for triggers are arguments. Every public call either makes its whole
change, or raises a refusal and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import StrEnum

from controller.declared.batch import Batch, JobPart
from controller.declared.declared import Declared
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey
from controller.journal.store import Store
from controller.model import Host, Job, Snapshot, Stage, Switch
from controller.pieces import Steps
from controller.refusals import NotFound
from controller.registry.admission import check_claims, check_room, check_spec, check_takes_parts
from controller.registry.job.record import JobRecord
from controller.registry.job.view import JobDescription, JobProgress, JobView
from controller.registry.jobs import JobListener, Jobs
from controller.registry.leases import AgentWord, Leases
from controller.registry.parts import Parts
from controller.registry.records import dump, load, save_host
from controller.registry.report_merge import BatchOrigin
from controller.registry.reports import BatchOutcome, Reports
from controller.registry.shares import make_room
from controller.registry.stages import Stages
from controller.registry.triggers import Trigger
from controller.registry.watch import Watch
from controller.wire import ReportAnswer, StageSpec, Threshold

LOG = logging.getLogger("trainyard.registry")
FORGET_LOST_SECONDS = 86400.0
"""End a job that has been lost for this long."""
Listener = Callable[[str, float], None]


class Change(StrEnum):
    """What a PUT did."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class Registry:
    """All jobs, stages and hosts. ``clock`` gives seconds since the epoch; every answer tells hosts the ``period``.

    ``steady`` is a clock that nobody sets, for leases; None stands for ``clock``.
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
        self.period_seconds = period_seconds
        self._store = store
        self._clock = clock
        steady = steady or clock
        self._names = set(self.hosts)
        """The names of the hosts; this very object stays when hosts come and go."""
        state = load(store.contents(), self.hosts, steady())
        self._jobs = Jobs(state, store, clock)
        self._stages = Stages(state.stages, self._jobs, store)
        self._leases = Leases(state.agents, steady, lease_seconds)
        self._watch = Watch()
        self._reports = Reports(self._jobs, self._watch, self._names)
        self.parts = Parts(self._jobs, self._leases, self._names, clock, self._trigger)
        for job in self._jobs.waiting_for_host():
            gone = ", ".join(sorted(job.hosts - self.hosts.keys()))
            LOG.warning(
                "job %s waits in the journal: hosts %s are not in the settings; DELETE removes it", job.id, gone
            )
        store.add_source(lambda batch: dump(state, batch))
        self._listeners: list[Listener] = []

    def jobs_on(self, hosts: Collection[str]) -> dict[str, list[str]]:
        """Returns, by host, the running jobs on these hosts."""
        found: dict[str, list[str]] = {}
        for job in self._jobs.live():
            for host in sorted(job.hosts.intersection(hosts)):
                found.setdefault(host, []).append(job.id)
        return found

    def change_hosts(self, hosts: Mapping[str, Host], lease_seconds: float) -> None:
        """Have other hosts, and another length of leases. No running job may be on a host that is gone.

        Jobs that waited in the journal for a host run again as soon as all their hosts are there.
        """
        self.hosts = dict(hosts)
        self._names.intersection_update(hosts)
        self._names.update(hosts)
        self._leases.seconds = lease_seconds
        for job in self._jobs.admit_waiting(self._names):
            LOG.info("job %s no longer waits: its hosts are in the settings", job)

    def forget_agent(self, host: str) -> None:
        """Forget what is known of a host's agent, because the host is gone for good."""
        self._leases.forget(host)
        self._store.remove("host", host)

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener(trigger, received_at)`` at every change that cannot wait for the period."""
        self._listeners.append(listener)

    def subscribe_to_jobs(self, listener: JobListener) -> None:
        """Call ``listener`` at each change of a job; see ``Jobs.subscribe``."""
        self._jobs.subscribe(listener)

    # Jobs and stages ---------------------------------------------------------------------------------------------

    def put_job_in_steps(
        self,
        job_id: str,
        spec: Declared,
        received_at: float,
        registrar: str | None = None,
        *,
        is_known: Callable[[str, str | None], bool] | None = None,
    ) -> Steps[Change]:
        """Register a job or replace its spec; the same spec again changes nothing.

        A spec for a job that has ended or was removed starts a new run. ``registrar``: the host whose token is used;
        None: an operator. ``is_known`` returns whether the caller may learn of a job, by its id and user; None: of all.
        Yields where others may go on; the job is registered, or refused, before the first time.
        Raises Invalid, or Conflict where another job claims the same traffic, or where the host's share of the room is
        used up, or NotAllowed where a host's token would take a job from its parts. A spec takes the place of parts.
        """
        old = self._jobs.get(job_id)
        live = old if old is not None and old.ended_at is None else None
        if live is not None and live.spec == spec and live.parts is None:
            return Change.UNCHANGED
        if live is not None and registrar is not None:
            check_takes_parts(live, spec)
        check_spec(spec, self.hosts.keys())
        now = self._clock()
        # A host's clock may be ahead; a job that arrives in the future would never age.
        arrival = min(spec.arrival, now) if spec.arrival is not None else None
        if live is None:
            check_room(self._jobs.live())
        giving_way = make_room(job_id, spec, registrar, self._jobs)
        check_claims(job_id, spec, registrar, self._jobs.owners, self._jobs.live(), is_known=is_known)
        for ended in giving_way:
            self._jobs.remove(ended)
        if live is None:
            self._jobs.start_run(job_id, spec, arrival=arrival, now=now, registrar=registrar)
            self._watch.forget(job_id)
        else:
            self._jobs.replace_spec(live, spec, arrival=arrival, registrar=registrar)
        self._trigger(Trigger.REGISTRATION, received_at)
        yield from self._jobs.release_flows(job_id, spec)
        return Change.CREATED if live is None else Change.REPLACED

    def delete_job(self, job_id: str, received_at: float) -> None:
        """Forget a job, also one that only waits in the journal; raises NotFound."""
        if self._jobs.remove_waiting(job_id):
            return
        job = self._jobs.find(job_id)
        self._jobs.remove(job)
        if job.ended_at is None:
            self._trigger(Trigger.REMOVAL, received_at)

    def put_stage_in_steps(self, stage_id: str, spec: StageSpec, received_at: float) -> Steps[Change]:
        """Make a stage consist of these jobs; the same jobs again change nothing.

        Yields where others may go on, once the stage is as it should be. Raises Invalid for unknown jobs, and Conflict
        for a job that is in another stage.
        """
        change = self._stages.put(stage_id, spec)
        if change is None:
            return Change.UNCHANGED
        self._trigger(Trigger.STAGE_START, received_at)
        yield from self._jobs.save_bodies(change.moved)
        return Change.CREATED if change.is_created else Change.REPLACED

    def delete_stage_in_steps(self, stage_id: str, received_at: float) -> Steps[None]:
        """End a stage; its jobs go on without one. Raises NotFound.

        Yields where others may go on, once the stage is gone.
        """
        members = self._stages.delete(stage_id)
        self._trigger(Trigger.STAGE_END, received_at)
        yield from self._jobs.save_bodies(members)

    def stage_jobs(self, stage_id: str) -> tuple[str, ...]:
        """Returns the jobs of a stage; raises NotFound. See ``Stages.jobs_of``."""
        return self._stages.jobs_of(stage_id)

    def stage_fillers(self, stage_id: str | None, but: str) -> frozenset[str | None]:
        """Returns who has put running jobs into a stage; see ``Stages.fillers``."""
        return self._stages.fillers(stage_id, but)

    def job_state(self, job_id: str, service_class: int | None = None) -> JobView:
        """Returns a job as the API shows it; raises NotFound."""
        return self._jobs.find(job_id).state(service_class)

    def job_states(self, classes: Mapping[str, int]) -> Iterator[JobView]:
        """Yields all jobs, those that ended lately included; each as it is at that moment."""
        return (job.state(classes.get(job.id)) for job in list(self._jobs))

    def has_job(self, job_id: str) -> bool:
        """Returns whether there is a job of this name, which may have ended lately."""
        return job_id in self._jobs

    def progress(self, job_id: str) -> JobProgress | None:
        """Returns how a job fares; None where there is none."""
        job = self._jobs.get(job_id)
        return job.progress() if job is not None else None

    def description(self, job_id: str) -> JobDescription | None:
        """Returns what a job is; None where there is none."""
        job = self._jobs.get(job_id)
        return job.description() if job is not None else None

    def progress_and_bytes(self) -> Iterator[tuple[JobProgress, float | None]]:
        """Yields how each job that has not ended fares, and the bytes that it has sent; None: nobody counts them."""
        return ((job.progress(), job.sent_total) for job in self._jobs.live())

    def stages(self) -> dict[str, tuple[str, ...]]:
        """Returns the stages that were put, or that running jobs name, with their running jobs in order."""
        members: dict[str, list[str]] = {stage: [] for stage in self._stages.names}
        for job in self._jobs.live():
            if job.stage is not None:
                members.setdefault(job.stage, []).append(job.id)
        return {stage: tuple(sorted(jobs)) for stage, jobs in sorted(members.items())}

    def live_job(self, job_id: str) -> Job | None:
        """Returns a job that runs, as the policies see it; None where there is none."""
        job = self._jobs.get(job_id)
        return job.value() if job is not None and job.ended_at is None else None

    def job_hosts(self, job_id: str) -> frozenset[str] | None:
        """Returns the hosts of a job; None where there is no such job."""
        return self._jobs.hosts_of(job_id)

    def job_user(self, job_id: str) -> str | None:
        """Returns the user of a job; None where none was named, or there is no such job."""
        return self._jobs.user_of(job_id)

    def running(self) -> Iterator[tuple[str, Declared]]:
        """Yields the id and the spec of each job that has not ended, those that wait for their hosts included."""
        jobs = (*self._jobs.live(), *self._jobs.waiting_for_host())
        return ((job.id, job.spec) for job in jobs if job.ended_at is None)

    def part_hosts(self, job_id: str) -> frozenset[str]:
        """Returns the hosts where a job runs that is joined of parts; of another job none."""
        job = self._jobs.get(job_id)
        return job.parts.running if job is not None and job.parts is not None else frozenset()

    @property
    def put_stages(self) -> frozenset[str]:
        """The stages that were put by themselves, and so are an operator's."""
        return frozenset(self._stages.names)

    # Families ----------------------------------------------------------------------------------------------------

    def families_in_steps(self) -> Steps[list[tuple[FamilyKey, FamilyHistory]]]:
        """Returns all families with what they say; yields where others may go on."""
        return self._jobs.families.views()

    def families(self, name: str, user: str | None = None) -> list[tuple[FamilyKey, FamilyHistory]]:
        """Returns the families of this name, of all owners or of one user; raises NotFound."""
        return self._jobs.families.views_of(name, user)

    def delete_family(self, name: str, user: str | None, received_at: float) -> None:
        """Forget the families of this name, of all owners or of one user; raises NotFound."""
        self._jobs.families.remove(name, user)
        self._trigger(Trigger.REMOVAL, received_at)

    def host_alive(self, host: str) -> bool:
        """Returns whether the host's lease runs."""
        return self._leases.is_alive(host)

    def agent(self, host: str) -> AgentWord:
        """Returns whether the agent of a host reports, is silent, or was never heard of."""
        return self._leases.agent(host)

    def agents(self) -> Iterator[AgentWord]:
        """Yields of each host whether its agent reports, is silent, or was never heard of."""
        return map(self._leases.agent, list(self.hosts))

    def clock_offset(self, host: str) -> float | None:
        """Returns what to add to a host's times to get the controller's, in seconds; None before it has reported."""
        return self._leases.clock_offset(host)

    def acknowledging(self) -> frozenset[str]:
        """Returns the hosts that mark acknowledgements and whose leases run."""
        return self._leases.acknowledging()

    # Reports -----------------------------------------------------------------------------------------------------

    def report_in_steps(self, host: str, batch: Batch, received_at: float) -> Steps[ReportAnswer]:
        """Merge one batch of a host. A part that cannot be merged is refused in the answer, and the rest is merged.

        Yields where others may go on. Two batches of a host must not be merged at the same time. The journal notes that
        the batch is merged only after all that it brought. Raises NotFound for a host that is not in the settings.
        """
        if host not in self.hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(self.hosts)[:20]) or 'none'}")
        now = self._clock()
        agent = self._leases.renew(host)
        is_new = agent.accept(batch.session, batch.seq, batch.sent_at, now)
        is_current = batch.session == agent.session
        if is_new and is_current:
            agent.marks_acknowledgements = batch.marks_acknowledgements
        outcome = BatchOutcome()
        if is_new:
            origin = BatchOrigin(
                host=host,
                session=batch.session,
                seq=batch.seq,
                is_current=is_current,
                clock_offset=agent.clock.offset,
                sent_at=batch.sent_at,
                now=now,
                received_at=received_at,
            )
            outcome = yield from self._reports.merge_in_steps(batch, origin)
        triggers = list(outcome.triggers)
        if self._jobs.return_lost(host, outcome.reported):
            triggers.append(Trigger.RETURN)
        for trigger in dict.fromkeys(triggers):
            self._trigger(trigger, received_at)
        save_host(self._store, host, agent)
        urgent = yield from self._urgent(host, batch.jobs)
        return ReportAnswer.model_construct(
            status="taken" if is_new else "duplicate",
            refused=tuple(outcome.refused),
            left_out=tuple(outcome.left_out),
            lease_seconds=self._leases.seconds,
            period_seconds=self.period_seconds,
            urgent=urgent,
            held=tuple(job.id for job in self._jobs.live() if job.reported_by.get(host)) if batch.seq == 1 else (),
        )

    def _urgent(self, host: str, parts: Iterable[JobPart]) -> Steps[dict[str, Threshold]]:
        """Returns, by job of the batch, the value whose crossing the host should report at once."""
        thresholds = {}
        for part in parts:
            job = self._jobs.get(part.job)
            # An agent with a host's token must not learn of the jobs of others.
            if job is not None and host in job.hosts and job.ended_at is None:
                threshold = self._watch.threshold(job)
                if threshold is not None:
                    thresholds[job.id] = threshold
            yield
        return thresholds

    # Time --------------------------------------------------------------------------------------------------------

    def expire_in_steps(self) -> Steps[None]:
        """Let leases run out, and forget jobs that ended long ago; yields where others may go on."""
        now, steady = self._clock(), self._leases.now()
        for job in self._jobs.live():
            yield
            if job.ended_at is not None or not self._jobs.has(job):
                continue  # it ended or was removed meanwhile
            if job.lost_since is None and self._leases.are_over_for(job, steady):
                self._jobs.lose(job, now)
                silent = ", ".join(sorted(job.witnesses)[:20])
                LOG.warning("job %s is lost: hosts %s were silent for %g s", job.id, silent, self._leases.seconds)
            if job.lost_since is not None and now - job.lost_since > FORGET_LOST_SECONDS:
                self._jobs.end(job, now, is_given_up=True)
            self._forget_connections(job, steady)
        self._jobs.forget_old(now)

    def _forget_connections(self, job: JobRecord, now: float) -> None:
        """Forget the connections that agents found which are gone."""
        absent = self._leases.absent_reporters(job, now)
        if job.traffic.drop(absent):
            job.found_changed()
            self._jobs.save_seen(job)
            where = ", ".join(sorted(absent)[:20])
            LOG.info("job %s: the connections found on %s are forgotten; the agent is gone", job.id, where)

    def set_watch(self, watch: Mapping[str, float], as_of: float) -> None:
        """Trigger once when a job's metric crosses its value; ``as_of`` is the time of the snapshot behind it."""
        self._watch.set(watch)
        for job_id in watch:
            job = self._jobs.get(job_id)
            # A crossing that was reported while the plan was being made would otherwise wait for the period.
            if job is not None and (job.last_report or 0.0) > as_of and self._watch.crosses(job, None):
                self._trigger(Trigger.TARGET_CROSSED, job.received_at)

    def snapshot_in_steps(
        self, now: float, *, classes: int, period: float, switches: Iterable[Switch] = ()
    ) -> Steps[Snapshot]:
        """Returns what a plan needs: the jobs that run and are not lost, by arrival, hosts, stages and switches.

        Yields where others may go on. A change meanwhile may be in it or not.
        """
        jobs = sorted(
            (job for job in self._jobs.live() if job.lost_since is None), key=lambda job: (job.arrival, job.id)
        )
        stages: dict[str, list[str]] = {stage: [] for stage in self._stages.names}
        values = []
        for job in jobs:
            job.set_family(self._jobs.families.history(job))
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

    def _trigger(self, trigger: str, received_at: float) -> None:
        for listener in self._listeners:
            listener(trigger, received_at)
