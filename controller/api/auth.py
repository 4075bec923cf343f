"""Who asks, by bearer token, and what a host's own token allows."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from http import HTTPStatus
from itertools import chain, islice

from controller.api.http import Call, HttpError, Identity
from controller.config.config import Api, is_loopback
from controller.declared.declared import Declared
from controller.model import Job
from controller.refusals import NotFound

EARLIEST_SECONDS = 60.0
"""How long ago a job may have arrived that a host's token registers: a file may wait so long for its agent."""
REALM = 'Bearer realm="trainyard"'


class Guard:
    """Knows the tokens. Without any, the API is open to this machine, and listens nowhere else."""

    def __init__(self, api: Api) -> None:
        self._host = api.host
        self._tokens: list[tuple[bytes, Identity]] = []
        if api.token is not None:
            self._tokens.append((api.token.get_secret_value().encode(), Identity()))
        for host, token in api.host_tokens.items():
            self._tokens.append((token.get_secret_value().encode(), Identity(host)))

    def identify(self, authorization: str | None, host_header: str | None) -> Identity:
        """Who asks; raises HttpError 401 without a right token, and 403 for a foreign page in a browser."""
        if not self._tokens:
            self._check_name(host_header)
            return Identity()
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip(" ").encode("utf-8", "replace") if scheme.lower() == "bearer" else b""
        found: Identity | None = None
        for known, identity in self._tokens:  # all of them, so that the time tells nothing
            if hmac.compare_digest(known, given):
                found = identity
        if found is None:
            problem = "a bearer token is required" if not authorization else "the token is not known here"
            raise HttpError(HTTPStatus.UNAUTHORIZED, problem, headers={"WWW-Authenticate": REALM}, close=True)
        return found

    def _check_name(self, host_header: str | None) -> None:
        """Without tokens, a web page whose name was pointed at this machine must not pass for an operator."""
        name = (host_header or "").strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name and not is_loopback(name) and name != self._host.lower():
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"the request is addressed to {name!r}, which is not this machine's own name; set api.token",
                close=True,
            )


def require_operator(call: Call) -> None:
    """Raises HttpError 403 for a host's own token."""
    if call.identity.host is not None:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"the token of host {call.identity.host} is for its reports, its plan and its jobs only",
            close=True,
        )


def require_host(call: Call, host: str) -> None:
    """Raises HttpError 404 where a host's token is used for another host, be there one of that name or not."""
    if call.identity.host not in (None, host):
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            f"there is no host {host} for the token of host {call.identity.host}, which is its own",
        )


def require_known(call: Call, job: str, hosts: Collection[str] | None) -> None:
    """Raises NotFound where a host's token is used for a job of other hosts, as where there is no such job.

    ``hosts`` are those that the job involves; None: there is none.
    """
    if hosts is not None and not _is_of(call, hosts):
        raise NotFound(f"there is no job {job}")


def require_free(call: Call, job: str, hosts: Collection[str] | None) -> None:
    """Raises HttpError 403 where a host's token would replace a job of other hosts; ``hosts`` as in require_known.

    That the name is taken cannot be hidden: a name that is free would be given.
    """
    if hosts is not None and not _is_of(call, hosts):
        raise HttpError(
            HTTPStatus.FORBIDDEN, f"the token of host {call.identity.host} cannot have the name {job}; choose another"
        )


def require_involved(call: Call, job: str, hosts: Collection[str]) -> None:
    """Raises HttpError 403 where a host's token would register a job that does not involve the host."""
    if not _is_of(call, hosts):
        raise HttpError(
            HTTPStatus.FORBIDDEN, f"this is the token of host {call.identity.host}, and job {job} does not involve it"
        )


def _is_of(call: Call, hosts: Collection[str]) -> bool:
    """Whether the one who asks may touch what is of these hosts."""
    return call.identity.host is None or call.identity.host in hosts


def require_own(call: Call, spec: Declared) -> None:
    """Raises HttpError 403 where a host's token is used to claim traffic that the host is no end of."""
    host = call.identity.host
    if host is None:
        return
    claimed = (("tasks", i, (task.host,)) for i, task in enumerate(spec.tasks) if task.port is not None)
    pairs = ((name, i, pair[:2]) for name in ("flows", "demand") for i, pair in enumerate(getattr(spec, name)))
    places = chain(claimed, pairs)
    problem = f"{host} is no end of this traffic, and its token may not claim it (api.host_jobs: own)"
    errors = list(islice(((f"{name}.{i}", problem) for name, i, ends in places if host not in ends), 50))
    if errors:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def require_modest(
    call: Call, spec: Declared, live: Job | None, now: float, *, stages: str, fillers: Collection[str | None]
) -> None:
    """Raises HttpError 403 where a host's token would put a job before others by what only operators may say.

    ``live`` is the job as it runs already: what it has, it may keep. ``now``: seconds since the epoch. ``stages`` is
    the setting api.host_stages, ``fillers`` whose the other jobs of the stage are, as the registry tells.
    """
    if call.identity.host is None:
        return
    errors = []
    if spec.stage is not None and (live is None or spec.stage != live.stage):
        if stages == "none":
            errors.append(("stage", "stages are for operators; leave it out, and have one PUT /v1/stages/{id}"))
        elif stages == "own" and set(fillers) - {call.identity.host}:
            problem = f"stage {spec.stage} is not of jobs of {call.identity.host}'s token alone; have an operator "
            errors.append(("stage", problem + "PUT /v1/stages/{id}, or set api.host_stages: any"))
    weight = max(1.0, live.weight if live is not None else 1.0)
    if spec.weight > weight:
        errors.append(("weight", f"a host's token gives at most {weight:g}; an operator's may give more"))
    earliest = now - EARLIEST_SECONDS
    if spec.arrival is not None and spec.arrival < min(earliest, live.arrival if live is not None else earliest):
        errors.append(
            (
                "arrival",
                f"it is more than {EARLIEST_SECONDS:g} s ago, which only an operator's token may say; "
                "leave it out, and the job arrives now",
            )
        )
    if errors:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{errors[0][0]}: {errors[0][1]}", errors=errors)
