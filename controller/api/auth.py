"""Identifies the client by its bearer token, and checks what a host's own token allows."""

from __future__ import annotations

import hmac
from collections.abc import Collection
from http import HTTPStatus
from itertools import chain, islice

from controller.access.caller import ANYBODY, Caller, Role
from controller.api.http import Call, HttpError
from controller.config.config import Api, is_loopback
from controller.declared.declared import Declared
from controller.model import Job
from controller.refusals import NotFound

EARLIEST_SECONDS = 60.0
"""A job that a host's token registers may have arrived at most so long ago: its file may wait for the agent."""
REALM = 'Bearer realm="trainyard"'


class Guard:
    """The known tokens. Without any, the API is open to clients on this machine, and listens on loopback only."""

    def __init__(self, api: Api) -> None:
        self._host = api.host
        self._tokens: list[tuple[bytes, Caller]] = []
        if api.token is not None:
            self._tokens.append((api.token.get_secret_value().encode(), Caller("operator", Role.OPERATOR)))
        for host, token in api.host_tokens.items():
            self._tokens.append((token.get_secret_value().encode(), Caller(host, Role.HOST, host=host)))

    def identify(self, authorization: str | None, host_header: str | None) -> Caller:
        """Returns who calls.

        Raises HttpError 401 without a known token. If no tokens are set, raises 403 for a web page from another site.
        """
        if not self._tokens:
            self._check_name(host_header)
            return ANYBODY
        scheme, _, token = (authorization or "").partition(" ")
        given = token.strip(" ").encode("utf-8", "replace") if scheme.lower() == "bearer" else b""
        caller: Caller | None = None
        for known, owner in self._tokens:  # all of them, so that the time reveals nothing
            if hmac.compare_digest(known, given):
                caller = owner
        if caller is None:
            problem = "a bearer token is required" if not authorization else "the token is not known here"
            raise HttpError(HTTPStatus.UNAUTHORIZED, problem, headers={"WWW-Authenticate": REALM}, close=True)
        return caller

    def _check_name(self, host_header: str | None) -> None:
        """Refuse requests by a foreign name (DNS rebinding): without tokens a web page could act as an operator."""
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
    if call.caller.host is not None:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"the token of host {call.caller.host} is for its reports, its plan and its jobs only",
            close=True,
        )


def require_host(call: Call, host: str) -> None:
    """Raises HttpError 404 where a host's token is used for another host, whether that host exists or not."""
    if call.caller.host not in (None, host):
        raise HttpError(
            HTTPStatus.NOT_FOUND,
            f"there is no host {host} for the token of host {call.caller.host}, which is its own",
        )


def require_known(call: Call, job: str, hosts: Collection[str] | None) -> None:
    """Raises NotFound where a host's token is used for a job of other hosts, as if there were no such job.

    ``hosts`` are those that the job involves, or None if there is no such job.
    """
    if hosts is not None and not _is_of(call, hosts):
        raise NotFound(f"there is no job {job}")


def require_free(call: Call, job: str, hosts: Collection[str] | None) -> None:
    """Raises HttpError 403 where a host's token would replace a job of other hosts; ``hosts`` as in require_known.

    The error reveals that the name is in use, which cannot be hidden: a free name would be granted.
    """
    if hosts is not None and not _is_of(call, hosts):
        raise HttpError(
            HTTPStatus.FORBIDDEN, f"the token of host {call.caller.host} cannot have the name {job}; choose another"
        )


def require_involved(call: Call, job: str, hosts: Collection[str]) -> None:
    """Raises HttpError 403 where a host's token would register a job that does not involve the host."""
    if not _is_of(call, hosts):
        raise HttpError(
            HTTPStatus.FORBIDDEN, f"this is the token of host {call.caller.host}, and job {job} does not involve it"
        )


def _is_of(call: Call, hosts: Collection[str]) -> bool:
    """Returns whether the client may change what belongs to these hosts."""
    return call.caller.host is None or call.caller.host in hosts


def require_own(call: Call, spec: Declared) -> None:
    """Raises HttpError 403 where a host's token claims traffic that neither begins nor ends at the host."""
    host = call.caller.host
    if host is None:
        return
    claimed = (("tasks", i, (task.host,)) for i, task in enumerate(spec.tasks) if task.port is not None)
    pairs = ((name, i, pair[:2]) for name in ("flows", "demand") for i, pair in enumerate(getattr(spec, name)))
    claims = chain(claimed, pairs)
    problem = f"{host} is no end of this traffic, and its token may not claim it (api.host_jobs: own)"
    errors = list(islice(((f"{name}.{i}", problem) for name, i, ends in claims if host not in ends), 50))
    if errors:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def check_host_privileges(
    call: Call, spec: Declared, live: Job | None, now: float, *, stages: str, fillers: Collection[str | None]
) -> None:
    """Raises HttpError 403 where a host's token would put a job before others by what only operators may set.

    ``live`` is the running job, which may keep its stage, weight and arrival. ``now`` is in seconds since the Unix
    epoch. ``stages`` is the setting api.host_stages. ``fillers`` are the hosts whose tokens registered the other
    jobs of the stage (None: an operator's).
    """
    if call.caller.host is None:
        return
    errors = []
    if spec.stage is not None and (live is None or spec.stage != live.stage):
        if stages == "none":
            errors.append(("stage", "stages are for operators; leave it out, and have one PUT /v1/stages/{id}"))
        elif stages == "own" and set(fillers) - {call.caller.host}:
            problem = f"stage {spec.stage} is not of jobs of {call.caller.host}'s token alone; have an operator "
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
