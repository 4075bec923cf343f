"""Turns each request that changes something, or that is refused, into a record of the audit.

All requests pass through here, so that no handler can forget it. What a request changes is looked at right before the
change, when nobody else can change it any more, and what it asked for counts as what is there after it.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from controller.access.audit.facts import Facts, differing
from controller.access.audit.pace import Pace
from controller.access.caller import Caller
from controller.access.network import network_of
from controller.api.auth import CERTIFICATE
from controller.api.calls.hosts import view_of
from controller.api.http import Call, Reply, in_words
from controller.api.routes import HOST, PART, RELOAD, REPORTS, Route
from controller.api.services import Services
from controller.declared.declared import Declared
from controller.declared.parts.part import Part
from controller.refusals import NotFound
from controller.wire import HostPut, StageSpec

LOG = logging.getLogger("trainyard.audit")
SMALL_SPEC = 8192
"""Compare the fields of specs whose JSON has at most so many characters; of larger ones compare numbers and sizes."""
_MOST_NAMES = 256
_MOST_HOSTS = 16
_SHOWN_PATH = 200
_OF_HOST = ("state", "addresses", "mac", "interface", "ingress_bps", "egress_bps", "switch", "port", "links")
"""Compare these fields of a host that has asked."""
WHO_AM_I = "GET /v1/caller"
"""The console asks this without a token, to learn whether one is needed. Who shows nothing here tries nothing."""
_NOT_ALLOWED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.TOO_MANY_REQUESTS)


class Observed:
    """What is learned of one request while it is answered. ``path`` is as in WSGI."""

    def __init__(self, environ: Mapping[str, Any], path: str) -> None:
        self.address: str | None = environ.get("REMOTE_ADDR")
        self.has_proof = "HTTP_AUTHORIZATION" in environ or bool(environ.get(CERTIFICATE))
        self.path = path
        self.caller: Caller | None = None
        self.route: Route | None = None
        self.call: Call | None = None
        self.body: Any = None
        self.before: Facts | None = None
        self.detail: str | None = None


class Auditor:
    """Writes the records of all requests. Its methods raise nothing: a fault of the audit fails no request."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._pace = Pace()

    def look(self, observed: Observed, route: Route, call: Call) -> None:
        """The request is allowed, and its handler is called next."""
        observed.route, observed.call = route, call
        self._look(observed)

    def read(self, observed: Observed, body: Any) -> None:
        """The body has been read. Others may have made changes while it came."""
        observed.body = body
        self._look(observed)

    def note(self, observed: Observed, name: str, reply: Reply) -> None:
        """Add the record of an answered request, if it gets one. ``name`` is the call's."""
        try:
            self._note(observed, name, reply)
        except Exception:
            LOG.exception("a request to %r has no record in the audit", observed.path[:_SHOWN_PATH])

    def _look(self, observed: Observed) -> None:
        subject = _subject(observed.route)
        if subject is None or observed.call is None:
            return
        try:
            observed.before = subject(self._services, observed.call)
        except NotFound:
            observed.before = None
        except Exception:
            LOG.exception("what %r changes cannot be told", observed.path[:_SHOWN_PATH])

    def _note(self, observed: Observed, name: str, reply: Reply) -> None:
        is_refused = reply.status >= HTTPStatus.BAD_REQUEST
        is_change = observed.route is not None and observed.route.changes
        if not (is_change or (is_refused and (name.endswith(REPORTS) or reply.status in _NOT_ALLOWED))):
            return
        if name == WHO_AM_I and not observed.has_proof:
            return
        before = after = None
        if is_refused:
            is_stranger = observed.caller is None
            if not self._pace.admits(_client(observed, reply), time.monotonic(), is_stranger=is_stranger):
                return
        else:
            before, after = _sides(observed, reply)
            if (after is not None and after == before) or _is_kept_whole(observed, reply):
                return
            before, after = differing(before, after)
        self._services.audit.add(
            {
                "who": _name_of(observed.caller),
                "role": observed.caller.role.value if observed.caller is not None else "none",
                "proof": observed.caller.proof if observed.caller is not None else None,
                "address": observed.address,
                "action": name,
                "path": in_words(observed.path)[:_SHOWN_PATH],
                "before": before,
                "after": after,
                "status": int(reply.status),
                "outcome": _outcome(reply.status),
                "detail": observed.detail[:_SHOWN_PATH] if observed.detail is not None else None,
                "skipped": self._pace.dequeue_skipped() or None,
            }
        )


def _client(observed: Observed, reply: Reply) -> str:
    """Returns whose refused tries count together: those of a caller or an address that have the same status."""
    caller = observed.caller
    # A name alone may be that of others, too: a person at the identity provider may be called as a token is.
    client = f"{caller.proof} {caller.role} {caller.name}" if caller is not None else network_of(str(observed.address))
    return f"{client} {int(reply.status)}"


def _name_of(caller: Caller | None) -> str:
    return caller.name if caller is not None else "unknown"


def _outcome(status: int) -> str:
    if status < HTTPStatus.BAD_REQUEST:
        return "done"
    return "refused" if status < HTTPStatus.INTERNAL_SERVER_ERROR else "failed"


Subject = Callable[[Services, Call], Facts]
"""Returns what a call changes, as it is now. Raises NotFound where it is not there."""


def _job(services: Services, call: Call) -> Facts:
    job = services.registry.job_state(call.path["id"])
    return {"state": "ended"} if job.state == "ended" else _spec(job.spec)


def _part(services: Services, call: Call) -> Facts:
    known = services.registry.parts.find(call.path["id"], call.path["host"])
    return {"state": "ended"} if not known.is_running else _part_facts(known.part)


def _stage(services: Services, call: Call) -> Facts:
    return _members(services.registry.stage_jobs(call.path["id"]))


def _settings(services: Services, _call: Call) -> Facts:
    return services.loop.settings.view().model_dump(mode="json")


def _family(services: Services, call: Call) -> Facts:
    found = services.registry.families(in_words(call.path["name"]), call.query.get("user"))
    return {"runs": sum(len(history.runs) for _, history in found)}


def _host(services: Services, call: Call) -> Facts:
    view = view_of(services, services.hosts.enrolments.find(call.path["host"]))
    return view.model_dump(mode="json", include=set(_OF_HOST))


_SUBJECTS: Mapping[str, Subject] = {
    "/v1/jobs/{id}": _job,
    PART: _part,
    "/v1/stages/{id}": _stage,
    "/v1/settings": _settings,
    "/v1/families/{name}": _family,
    HOST: _host,
}


def _subject(route: Route | None) -> Subject | None:
    return _SUBJECTS.get(route.path) if route is not None and route.changes else None


def _sides(observed: Observed, reply: Reply) -> tuple[Facts | None, Facts | None]:
    """Returns what a done request has changed, as it was before and as it is after."""
    if observed.route is not None and observed.route.path == RELOAD:
        changed = json.loads(reply.body)["changed"]
        return {each["field"]: each["before"] for each in changed}, {each["field"]: each["after"] for each in changed}
    return observed.before, _after(observed, reply)


def _after(observed: Observed, reply: Reply) -> Facts | None:
    """Returns what a done request has made; None where nothing is left, or it is not known."""
    if isinstance(observed.body, Declared):
        return _spec(observed.body)
    if isinstance(observed.body, Part):
        return _part_facts(observed.body)
    if isinstance(observed.body, StageSpec):
        return _members(observed.body.jobs)
    if observed.route is not None and observed.route.path == "/v1/settings":
        settings: dict[str, Any] = json.loads(reply.body)
        return settings
    if isinstance(observed.body, HostPut):
        view = json.loads(reply.body)
        return {name: view[name] for name in _OF_HOST}
    return None


def _spec(spec: Declared) -> Facts:
    """Returns the fields of a job's spec; of a large one those that are quickly compared."""
    if len(spec.text) <= SMALL_SPEC:
        fields: dict[str, Any] = json.loads(spec.text)
        return fields
    return {
        "iterations": spec.iterations,
        "target": spec.target,
        "weight": spec.weight,
        "arrival": spec.arrival,
        "stage": spec.stage,
        "family": spec.family,
        "user": spec.user,
        "tasks": {"entries": len(spec.tasks)},
        "flows": {"entries": len(spec.flows)},
        "demand": {"entries": len(spec.demand)},
        "characters": len(spec.text),
    }


def _part_facts(part: Part) -> Facts:
    """Returns the fields of a part; of the hosts only how many there are where these are many."""
    metric = None if part.metric is None else {"name": part.metric.name, "direction": part.metric.direction}
    hosts = sorted(part.hosts) if len(part.hosts) <= _MOST_HOSTS else {"entries": len(part.hosts)}
    return {**part._asdict(), "metric": metric, "hosts": hosts}


def _is_kept_whole(observed: Observed, reply: Reply) -> bool:
    """Returns whether a request was for a part of a job that was registered whole, and has changed nothing."""
    is_part = observed.route is not None and observed.route.path == PART and observed.route.method == "PUT"
    return is_part and not json.loads(reply.body)["joined"]


def _members(jobs: tuple[str, ...]) -> Facts:
    return {"jobs": list(jobs) if len(jobs) <= _MOST_NAMES else {"entries": len(jobs)}}
