"""Finds out who calls, and checks what a host's own token allows."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from itertools import chain, islice
from typing import Any

from controller.access.caller import ANYBODY, Caller
from controller.access.callers import Callers
from controller.access.client_certificates import ClientCertificate
from controller.access.throttle import Throttle
from controller.access.unknown import UnknownCallerError
from controller.api.http import Call, HttpError
from controller.config.config import is_loopback
from controller.declared.declared import Declared
from controller.declared.job_flows import claims_traffic
from controller.loop.metrics import Metrics
from controller.model import Job
from controller.refusals import NotFound

LOG = logging.getLogger("trainyard.access")
CERTIFICATE = "trainyard.certificate"
"""Key of the WSGI environment for what ``getpeercert`` says of the client's certificate."""
EARLIEST_SECONDS = 60.0
"""A job that a host's token registers may have arrived at most so long ago: its file may wait for the agent."""
REALM = 'Bearer realm="trainyard"'


class Guard:
    """Finds out who calls, and slows down who guesses.

    ``callers`` returns who may call now. ``steady`` is in seconds and never goes back.

    Without any token the API is open to clients on this machine, and listens on loopback only.
    """

    def __init__(
        self,
        own_name: str,
        callers: Callable[[], Callers],
        metrics: Metrics,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._own_name = own_name
        self._callers = callers
        self._metrics = metrics
        self._steady = steady
        self._throttle = Throttle()

    def identify(self, environ: Mapping[str, Any]) -> Caller:
        """Returns who has sent the request in a WSGI environment.

        Raises HttpError 401 without a known token or client certificate, and 429 where the client's address has sent
        too many wrong ones lately. If no tokens are set, raises 403 for a web page from another site.
        """
        callers = self._callers()
        if callers.is_open:
            self._check_name(environ.get("HTTP_HOST"))
            return ANYBODY
        address = str(environ.get("REMOTE_ADDR", ""))
        authorization = environ.get("HTTP_AUTHORIZATION")
        try:
            if not authorization:
                return callers.by_certificate(ClientCertificate.of(environ.get(CERTIFICATE)))
            self._check_rate(address)
            scheme, _, token = authorization.partition(" ")
            return callers.by_token(token.strip(" ") if scheme.lower() == "bearer" else "")
        except UnknownCallerError as error:
            if error.proof != "none":
                self._refused(address, error.proof, str(error))
                self._throttle.wrong(address, self._steady())
            raise HttpError(
                HTTPStatus.UNAUTHORIZED, str(error), headers={"WWW-Authenticate": REALM}, close=True
            ) from None

    def _check_rate(self, address: str) -> None:
        wait = self._throttle.wait(address, self._steady())
        if wait > 0.0:
            self._refused(address, "slowed", "too many were wrong before")
            raise HttpError(
                HTTPStatus.TOO_MANY_REQUESTS,
                f"too many wrong tokens have come from {address}; ask again later",
                headers={"Retry-After": str(math.ceil(wait))},
                close=True,
            )

    def _refused(self, address: str, proof: str, why: str) -> None:
        """Count a refusal, and log it once a minute and address."""
        self._metrics.wrong_tokens.labels(proof=proof).inc()
        count = self._throttle.to_log(address, self._steady())
        if count is not None:
            more = f" ({count} refusals since the last such line)" if count > 1 else ""
            LOG.warning("a request from %s is refused: %s%s", address, why, more)

    def _check_name(self, host_header: str | None) -> None:
        """Refuse requests by a foreign name (DNS rebinding): without tokens a web page could act as an operator."""
        name = (host_header or "").strip().lower()
        name = name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]
        if name and not is_loopback(name) and name != self._own_name.lower():
            raise HttpError(
                HTTPStatus.FORBIDDEN,
                f"the request is addressed to {name!r}, which is not this machine's own name; set api.token",
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


def require_no_others(call: Call, job: str, hosts: Collection[str]) -> None:
    """Raises HttpError 403 where a host's token would end a job on other hosts, which have told of it themselves.

    ``hosts`` are those where a job runs that is joined of parts.
    """
    if call.caller.host is not None and set(hosts) - {call.caller.host}:
        raise HttpError(
            HTTPStatus.FORBIDDEN,
            f"job {job} runs on other hosts, too; the token of host {call.caller.host} may remove its own part: "
            f"DELETE /v1/jobs/{job}/parts/{call.caller.host}",
        )


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
    claimed = (("tasks", i, (task.host,)) for i, task in enumerate(spec.tasks) if claims_traffic(task))
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
    errors += check_arrival(spec, live, now)
    if errors:
        raise HttpError(HTTPStatus.FORBIDDEN, f"{errors[0][0]}: {errors[0][1]}", errors=errors)


def check_arrival(spec: Declared, live: Job | None, now: float) -> list[tuple[str, str]]:
    """Returns the fault of an arrival that only operators may set, if it is one; arguments as in the function above."""
    earliest = now - EARLIEST_SECONDS
    if spec.arrival is None or spec.arrival >= min(earliest, live.arrival if live is not None else earliest):
        return []
    problem = f"it is more than {EARLIEST_SECONDS:g} s ago, which only an operator's token may say; "
    return [("arrival", problem + "leave it out, and the job arrives now")]
