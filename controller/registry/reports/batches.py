"""Accepts the batches of hosts: renews the lease, merges what is new, triggers plans, and answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from controller.declared.batch import Batch, JobPart
from controller.journal.store import Store
from controller.pieces import Steps
from controller.refusals import NotFound
from controller.registry.agents.leases import Leases
from controller.registry.jobs import Jobs
from controller.registry.records import save_host
from controller.registry.reports.batch_merge import BatchOutcome, Reports
from controller.registry.reports.part_merge import BatchOrigin
from controller.registry.triggers import Trigger
from controller.registry.watch import Watch
from controller.wire import ReportAnswer, Threshold


class Calls(NamedTuple):
    """What the registry gives: the clock, the ``period`` of hosts in seconds as it is now, and who is triggered."""

    clock: Callable[[], float]
    period: Callable[[], float]
    trigger: Callable[[str, float], None]


class Batches:
    """Accepts the batches for ``jobs``.

    ``hosts`` are the names of those in the settings, and ``endpoints`` those of their interfaces.
    """

    def __init__(
        self,
        jobs: Jobs,
        leases: Leases,
        watch: Watch,
        hosts: Collection[str],
        *,
        endpoints: Collection[str],
        store: Store,
        calls: Calls,
    ) -> None:
        self._jobs = jobs
        self._leases = leases
        self._watch = watch
        self._hosts = hosts
        self._store = store
        self._calls = calls
        self._reports = Reports(jobs, watch, hosts, endpoints)

    def accept_in_steps(self, host: str, batch: Batch, received_at: float) -> Steps[ReportAnswer]:
        """Merge one batch of a host. A part that cannot be merged is refused in the answer, and the rest is merged.

        Yields where others may go on. Two batches of a host must not be merged at the same time. The journal notes that
        the batch is merged only after all that it brought. Raises NotFound for a host that is not in the settings.
        """
        if host not in self._hosts:
            raise NotFound(f"there is no host {host}; there are: {', '.join(sorted(self._hosts)[:20]) or 'none'}")
        now = self._calls.clock()
        agent = self._leases.renew(host)
        is_new = agent.accept(batch.session, batch.seq, batch.sent_at, now)
        is_current = batch.session == agent.session
        if is_new and is_current:
            agent.marks, agent.marks_acknowledgements = batch.marks, batch.marks_acknowledgements
            agent.tunnel_ports = batch.tunnel_ports
            if batch.interfaces is not None:
                agent.interfaces = tuple(batch.interfaces)
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
            self._calls.trigger(trigger, received_at)
        save_host(self._store, host, agent)
        urgent = yield from self._urgent(host, batch.jobs)
        return ReportAnswer.model_construct(
            status="taken" if is_new else "duplicate",
            refused=tuple(outcome.refused),
            left_out=tuple(outcome.left_out),
            lease_seconds=self._leases.seconds,
            period_seconds=self._calls.period(),
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
