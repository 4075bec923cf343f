"""A picture as one JSON document, for scripts. Pure."""

from __future__ import annotations

from typing import Any

from controller.cli.top.contention import Wait
from controller.cli.top.frame import meetings
from controller.cli.top.paces import alone
from controller.cli.top.picture import Picture
from controller.cli.top.ports import busiest
from controller.wire import JobState


def document(picture: Picture) -> dict[str, Any]:
    """Returns the document. What the caller may not see is null."""
    status, plan = picture.status, picture.plan
    found = meetings(picture)
    return {
        "policy": plan.policy if plan is not None else None,
        "period_seconds": picture.settings.period_seconds if picture.settings is not None else None,
        "paused": status.paused if status is not None else None,
        "enforce": list(status.enforce) if status is not None else None,
        "epoch": plan.epoch if plan is not None else None,
        "objective_seconds": plan.objective if plan is not None else None,
        "lower_bound_seconds": plan.bound if plan is not None else None,
        "problems": list(status.problems) if status is not None else None,
        "silent_hosts": [host.name for host in status.hosts if not host.alive] if status is not None else None,
        "jobs": [_job(job, picture, found.get(name)) for name, job in sorted(picture.jobs.items())],
        "ports": None
        if picture.network is None
        else [
            {"port": use.name, "rate_bps": use.rate_bps, "load_bps": use.load_bps, "by_class_bps": dict(use.by_class)}
            for use in busiest(picture.network)
        ],
    }


def _job(job: JobState, picture: Picture, wait: Wait | None) -> dict[str, Any]:
    return {
        "id": job.id,
        "state": job.state,
        "user": job.spec.user,
        "stage": job.spec.stage,
        "service_class": job.service_class,
        "iterations_done": job.iterations_done,
        "iterations_total": job.spec.iterations,
        "metric": job.spec.metric.name,
        "iterations_per_second": picture.paces.get(job.id) if job.state == "running" else None,
        "alone_iterations_per_second": alone(job, picture.loads.get(job.id, {})),
        "last_metric": job.last_metric,
        "targets": {name: target.model_dump() for name, target in job.targets.items()},
        "bytes_per_second": picture.sent.get(job.id),
        "busiest_port": f"{wait.port.host} {wait.port.direction}" if wait is not None else None,
        "before": list(wait.before) if wait is not None else [],
    }
