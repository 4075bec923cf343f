"""Ray: the workers of a job on a Ray cluster, such as those of Ray Train."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting


class Ray(Launcher):
    """A worker process of Ray's.

    Variable: RAY_JOB_ID, the id that ``ray.get_runtime_context().get_job_id()`` returns
    (https://docs.ray.io/en/latest/ray-core/api/doc/ray.runtime_context.RuntimeContext.get_job_id.html). Ray Train gives
    a worker its rank after its start, so it is not in the environment that others see.
    """

    name = "ray"
    precedence = Precedence.FRAMEWORK
    reads = frozenset({"RAY_JOB_ID"})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the job of a worker."""
        job = facts.environment.get("RAY_JOB_ID")
        return self.by_environment(facts, job) if job else None
