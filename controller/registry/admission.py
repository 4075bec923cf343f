"""Checks whether a job may be registered: its hosts, its ports, the room, and the claims of other jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from controller.declared.declared import Declared
from controller.declared.job_flows import repeated_ports, unknown_hosts
from controller.declared.owners import Owners
from controller.refusals import Conflict, Invalid, NotAllowed
from controller.registry.job.record import JobRecord

MAX_JOBS = 10_000


def check_spec(spec: Declared, hosts: Set[str]) -> None:
    """Raises Invalid for a spec with unknown hosts or repeated ports. ``hosts`` are those in the settings."""
    errors = [] if spec.hosts <= hosts else unknown_hosts(spec, hosts)
    errors += repeated_ports(spec)
    if errors:
        raise Invalid(errors)


def check_room(live: Sequence[JobRecord]) -> None:
    """Raises Conflict where there is no room for another job beside those that run."""
    if len(live) >= MAX_JOBS:
        raise Conflict(f"there are {MAX_JOBS} jobs already, which is the most; let some end, or remove some")


def check_takes_parts(live: JobRecord, spec: Declared) -> None:
    """Raises NotAllowed where a host's token would register a job whole that runs on hosts, and leave out one of them.

    So it would for a job of another user.
    """
    if live.parts is None:
        return
    if spec.user != live.spec.user:
        raise NotAllowed(f"job {live.id} belongs to another user")
    if not live.parts.running <= spec.hosts:
        raise NotAllowed(
            f"job {live.id} runs on hosts that this spec leaves out; only an operator may take it from them"
        )


def check_claims(
    job_id: str,
    spec: Declared,
    registrar: str | None,
    owners: Owners,
    live: Sequence[JobRecord],
    *,
    is_known: Callable[[str, str | None], bool] | None = None,
) -> None:
    """Raises Conflict where another job claims the same traffic; of several jobs the first in ``live`` is named.

    ``registrar``: the host whose token is used; None: an operator or a tenant. ``is_known`` returns whether the caller
    may learn of a job, by its id and user; None: of all.
    """
    clashing = owners.clashes(spec.claims) - {job_id}
    for other in [job for job in live if job.id in clashing] if clashing else ():
        if (clash := spec.claims.conflict(other.spec.claims, spec)) is not None:
            field, both = clash
            # Hosts and tenants must not learn what the jobs of others are called.
            is_named = registrar is None or registrar in other.hosts
            if is_known is not None:
                is_named = is_named and is_known(other.id, other.spec.user)
            whose = f"jobs {job_id} and {other.id}" if is_named else f"job {job_id} and another one"
            problem = f"{whose} both claim {both}; traffic must belong to one job"
            raise Conflict(problem, [(field, problem)])
