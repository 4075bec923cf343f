"""What time ends: jobs whose hosts are silent are lost, and connections that no agent confirms are forgotten."""

from __future__ import annotations

import logging
from collections.abc import Callable

from controller.pieces import Steps
from controller.registry.agents.leases import Leases
from controller.registry.job.record import JobRecord
from controller.registry.jobs import Jobs

LOG = logging.getLogger("trainyard.registry")
FORGET_LOST_SECONDS = 86400.0
"""End a job that has been lost for this long."""


class Expiry:
    """Lets the time pass for ``jobs``, by the ``leases`` of their hosts."""

    def __init__(self, jobs: Jobs, leases: Leases, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._leases = leases
        self._clock = clock

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
        if job.forget_found(absent):
            self._jobs.save_seen(job)
            where = ", ".join(sorted(absent)[:20])
            LOG.info("job %s: the connections found on %s are forgotten; the agent is gone", job.id, where)
