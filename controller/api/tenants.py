"""Checks what a tenant may do with jobs: its own only, and within its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from controller.access.caller import Caller, Tenancy
from controller.api.auth import check_arrival
from controller.api.http import HttpError
from controller.declared.declared import Declared
from controller.model import Job
from controller.refusals import NotFound
from controller.registry.shares import HOST_ENTRIES

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")
"""What may be the name of a job in a sentence: dots at its end belong to the sentence."""
ANOTHER = "another job"
"""Stands where a tenant may not see a job's name."""
Running = tuple[str, Declared]
"""A job that has not ended: its id and what was declared of it."""


def may_see(caller: Caller, job: str, user: str | None) -> bool:
    """Returns whether a caller may see a job; a tenant sees its own."""
    return caller.tenancy is None or caller.tenancy.owns(job, user)


def without_others(caller: Caller, text: str, user_of: Mapping[str, str | None]) -> str:
    """Returns a sentence about jobs in which a tenant finds no names of others' jobs. ``user_of``: all jobs' users."""
    if caller.tenancy is None:
        return text

    def shown(match: re.Match[str]) -> str:
        name = match.group()
        return name if name not in user_of or may_see(caller, name, user_of[name]) else ANOTHER

    return _NAME.sub(shown, text)


def require_seen(caller: Caller, job: str, user: str | None) -> None:
    """Raises NotFound where a tenant asks for a job of others, as if there were no such job."""
    if not may_see(caller, job, user):
        raise NotFound(f"there is no job {job}")


def require_name(caller: Caller, job: str, user: str | None) -> None:
    """Raises HttpError 403 where a tenant would replace a job of others. ``user`` is that of the job with this name."""
    if not may_see(caller, job, user):
        raise HttpError(HTTPStatus.FORBIDDEN, f"{caller.name} cannot have the name {job}; choose another")


def check_bounds(
    caller: Caller,
    job: str,
    spec: Declared,
    live: Job | None,
    running: Iterable[Running],
    *,
    put_stages: frozenset[str],
    now: float,
) -> None:
    """Raises HttpError 403 where a tenant would register what its bounds do not allow; all faults are named.

    ``live`` is the job of this name that runs, if there is one. ``running`` are all jobs that run. ``put_stages`` are
    the stages of operators. ``now`` is in seconds since the Unix epoch.
    """
    tenancy = caller.tenancy
    if tenancy is None:
        return
    others = [(name, other) for name, other in running if name != job]
    own = [other for name, other in others if tenancy.owns(name, other.user)]
    errors = [
        *_name(caller.name, tenancy, job, spec, live),
        *_weight(tenancy, spec, live),
        *_stage(tenancy, spec, live, others, put_stages),
        *check_arrival(spec, live, now),
    ]
    if live is None and len(own) >= tenancy.max_jobs:
        problem = f"{caller.name} has {len(own)} running jobs, and {tenancy.max_jobs} are the most; let some end"
        errors.append(("(body)", problem))
    size = spec.size + sum(other.size for other in own)
    if size > HOST_ENTRIES:
        problem = f"the jobs of {caller.name} would name {size} tasks, demands and flows; {HOST_ENTRIES} is the most"
        errors.append(("(body)", problem))
    if errors:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def _name(name: str, tenancy: Tenancy, job: str, spec: Declared, live: Job | None) -> list[tuple[str, str]]:
    errors = []
    if tenancy.prefix is not None and live is None and not job.startswith(tenancy.prefix):
        errors.append(("id", f"new jobs of {name} have names that begin with {tenancy.prefix}"))
    if spec.user not in tenancy.users:
        errors.append(("user", f"a job of {name} says whose it is: {' or '.join(tenancy.users)}"))
    return errors


def _weight(tenancy: Tenancy, spec: Declared, live: Job | None) -> list[tuple[str, str]]:
    most = max(tenancy.max_weight, live.weight if live is not None else 0.0)
    return [("weight", f"{most:g} is the most for this tenant")] if spec.weight > most else []


def _stage(
    tenancy: Tenancy, spec: Declared, live: Job | None, others: list[Running], put_stages: frozenset[str]
) -> list[tuple[str, str]]:
    before = live.stage if live is not None else None
    if spec.stage is None or spec.stage == before:
        return []
    is_foreign = any(other.stage == spec.stage and not tenancy.owns(name, other.user) for name, other in others)
    if is_foreign or spec.stage in put_stages or before in put_stages:
        return [("stage", f"stage {spec.stage} is not of this tenant's jobs alone; an operator may PUT /v1/stages/ID")]
    return []
