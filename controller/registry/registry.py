"""The registry: jobs, stages and hosts, merged from what operators and hosts report. Here is what changes them.

All merges are monotone and idempotent, so reports may come twice, late or in another order. Nothing here talks to
anything: the clock, the journal and the listeners for triggers are arguments. Every public call either makes its whole
change, or raises a refusal and changes nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import StrEnum

from controller.code_points import CodePoints
from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.endpoints.servers import Servers
from controller.journal.store import Store
from controller.model import Host
from controller.pieces import Steps
from controller.registry.admission import check_claims, check_room, check_spec, check_takes_parts
from controller.registry.agents.leases import Leases
from controller.registry.expiry import Expiry
from controller.registry.jobs import JobListener, Jobs
from controller.registry.parts import Parts
from controller.registry.queries import Queries
from controller.registry.records import dump, load
from controller.registry.reports.batches import Batches, Calls
from controller.registry.shares import make_room
from controller.registry.stages import Stages
from controller.registry.triggers import Trigger
from controller.registry.watch import Watch
from controller.wire import ReportAnswer, StageSpec

LOG = logging.getLogger("trainyard.registry")
Listener = Callable[[str, float], None]


class Change(StrEnum):
    """What a PUT did."""

    CREATED = "created"
    REPLACED = "replaced"
    UNCHANGED = "unchanged"


class Registry(Queries):
    """All jobs, stages and hosts. ``clock`` gives seconds since the epoch; every answer tells hosts the ``period``.

    ``steady`` is a clock that nobody sets, for leases; None stands for ``clock``. ``points`` say whether jobs have
    DSCPs of their own; None: they do not.
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
        points: CodePoints | None = None,
    ) -> None:
        steady = steady or clock
        servers = Servers(hosts)
        state = load(store.contents(), servers, steady())
        jobs, leases = Jobs(state, store, clock, points), Leases(state.agents, steady, lease_seconds)
        super().__init__(hosts, jobs, Stages(state.stages, jobs, store), leases)
        self.period_seconds = period_seconds
        self._store = store
        self._clock = clock
        self._names = set(servers)
        """The names of the hosts; this very object stays when hosts come and go."""
        self._endpoints = set(hosts)
        """The names of their interfaces, likewise."""
        self._watch = Watch()
        calls = Calls(clock, lambda: self.period_seconds, self._trigger)
        self._batches = Batches(
            jobs, leases, self._watch, self._names, endpoints=self._endpoints, store=store, calls=calls
        )
        self._expiry = Expiry(jobs, leases, clock)
        self.parts = Parts(jobs, leases, self._names, clock, self._trigger)
        for job in jobs.waiting_for_host():
            gone = ", ".join(sorted(job.hosts - servers.keys()))
            LOG.warning(
                "job %s waits in the journal: hosts %s are not in the settings; DELETE removes it", job.id, gone
            )
        store.add_source(lambda batch: dump(state, batch))
        self._listeners: list[Listener] = []

    def change_hosts(self, hosts: Mapping[str, Host], lease_seconds: float) -> None:
        """Have other hosts, and another length of leases. No running job may be on a host that is gone.

        Jobs that waited in the journal for a host run again as soon as all their hosts are there.
        """
        self._set_hosts(hosts)
        self._names.intersection_update(self.servers)
        self._names.update(self.servers)
        self._endpoints.intersection_update(hosts)
        self._endpoints.update(hosts)
        self._leases.seconds = lease_seconds
        for job in self._jobs.admit_waiting(self._names):
            LOG.info("job %s no longer waits: its hosts are in the settings", job)

    def change_points(self, points: CodePoints) -> None:
        """Have other DSCPs for jobs that are registered from now on; those that run keep theirs."""
        self._jobs.dscps.points = points

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

    # Jobs, stages and families -----------------------------------------------------------------------------------

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
        check_spec(spec, self.servers.keys())
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

    def delete_family(self, name: str, user: str | None, received_at: float) -> None:
        """Forget the families of this name, of all owners or of one user; raises NotFound."""
        self._jobs.families.remove(name, user)
        self._trigger(Trigger.REMOVAL, received_at)

    # Reports and time --------------------------------------------------------------------------------------------

    def report_in_steps(self, host: str, batch: Batch, received_at: float) -> Steps[ReportAnswer]:
        """Merge one batch of a host, and answer it; see ``Batches.accept_in_steps``."""
        return self._batches.accept_in_steps(host, batch, received_at)

    def expire_in_steps(self) -> Steps[None]:
        """Let leases run out, and forget jobs that ended long ago; yields where others may go on."""
        return self._expiry.expire_in_steps()

    def set_watch(self, watch: Mapping[str, float], as_of: float) -> None:
        """Trigger once when a job's metric crosses its value; ``as_of`` is the time of the snapshot behind it."""
        self._watch.set(watch)
        for job_id in watch:
            job = self._jobs.get(job_id)
            # A crossing that was reported while the plan was being made would otherwise wait for the period.
            if job is not None and (job.last_report or 0.0) > as_of and self._watch.crosses(job, None):
                self._trigger(Trigger.TARGET_CROSSED, job.received_at)

    def _trigger(self, trigger: str, received_at: float) -> None:
        for listener in self._listeners:
            listener(trigger, received_at)
