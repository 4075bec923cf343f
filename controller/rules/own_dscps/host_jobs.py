"""Which jobs each host has, with the DSCP that each has for its life: what hosts hand over at launch. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from controller.model import Snapshot, server_of
from controller.rules.pairs.places import hosts_of


class HostJob(NamedTuple):
    """A job of a host: the fields of ``wire.HostJob``."""

    job: str
    dscp: int
    service_class: int


HostJobs = Mapping[str, tuple[HostJob, ...]]


def host_jobs(snapshot: Snapshot, classes: Mapping[str, int]) -> HostJobs:
    """Returns each server's jobs that have a DSCP of their own, sorted by name; servers without any are left out.

    A job that is not in ``classes`` yet has its DSCP all the same, and the last class.
    """
    last = snapshot.classes - 1
    found: dict[str, list[HostJob]] = {}
    for job in sorted(snapshot.jobs, key=lambda job: job.id):
        if job.dscp is not None:
            here = HostJob(job.id, job.dscp, classes.get(job.id, last))
            for server in sorted({server_of(name) for name in hosts_of(job)}):
                found.setdefault(server, []).append(here)
    return {server: tuple(jobs) for server, jobs in found.items()}
