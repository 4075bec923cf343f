"""The parts of the controller that take other settings while it runs."""

from __future__ import annotations

from functools import partial

from controller.config.config import Config
from controller.dataplane.plane import Dataplane
from controller.loop.loop import Loop
from controller.process.startup import dataplane_settings
from controller.refusals import Invalid
from controller.registry.registry import Registry
from controller.reload.part import Prepare, Prepared


def of_loop(loop: Loop) -> Prepare:
    """Returns the part that plans: its policy must work with the present jobs."""
    return lambda config: Prepared(loop.prepare(config))


def of_dataplane(dataplane: Dataplane) -> Prepare:
    """Returns the part that keeps queues and rules."""
    return lambda config: Prepared(partial(dataplane.change, dataplane_settings(config)))


def of_registry(registry: Registry) -> Prepare:
    """Returns the part that knows the jobs. A host on which a job runs must stay in the settings."""

    def prepare(config: Config) -> Prepared:
        hosts = config.host_map()
        busy = registry.jobs_on(registry.hosts.keys() - hosts)
        if busy:
            raise Invalid(
                [
                    ("hosts", f"{host} is gone, but {_names(jobs)} on it; remove the job first (DELETE /v1/jobs)")
                    for host, jobs in busy.items()
                ]
            )
        return Prepared(partial(registry.change_hosts, hosts, config.lease_seconds))

    return prepare


def _names(jobs: list[str]) -> str:
    shown = ", ".join(jobs[:5]) + (f" and {len(jobs) - 5} more" if len(jobs) > 5 else "")
    return f"job {shown} runs" if len(jobs) == 1 else f"jobs {shown} run"
