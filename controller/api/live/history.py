"""``GET /v1/history``: the last hour in numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Sequence
from http import HTTPStatus

from controller.access.caller import Caller
from controller.api.bodies.query import number
from controller.api.errors import summary
from controller.api.http import Call, HttpError, Reply
from controller.api.live.writer import in_parts
from controller.api.services import Services
from controller.api.tenants import may_see
from controller.events.blocks import Numbers
from controller.events.history import JOB_FIELDS, PORT_FIELDS, History, texts
from controller.events.rings import SAMPLE_SECONDS, SLOTS, slot_of
from controller.refusals import NotFound

KEPT_SECONDS = SAMPLE_SECONDS * SLOTS
MOST_NUMBERS = 2_000_000
"""Limits the numbers of an answer, by longer steps."""
_LATEST = 10.0**12


def read_history(services: Services, call: Call) -> Reply:
    """Read the last hour in numbers: of each job, and of each port of a switch; a tenant's own jobs for a tenant."""
    history, now = services.history, services.loop.now()
    since = max(number(call.query, "since", 0.0, _LATEST, default=0.0), now - KEPT_SECONDS)
    wanted = number(call.query, "step", SAMPLE_SECONDS, KEPT_SECONDS, default=SAMPLE_SECONDS)
    jobs = _jobs(services, call.caller, call.query.get("jobs"))
    ports = _ports(history, call.caller, call.query.get("ports"))
    # A step more than what is asked for, because the first and the last one may be parts of a step.
    whole = (slot_of(now) - slot_of(min(since, now)) + 2) * (
        len(jobs) * len(JOB_FIELDS) + len(ports) * len(PORT_FIELDS)
    )
    step = _step(math.ceil(wanted / SAMPLE_SECONDS), math.ceil(whole / MOST_NUMBERS), is_asked="step" in call.query)
    first = slot_of(min(since, now)) // step * step
    count = slot_of(now) // step + 1 - first // step
    head = {
        "since": first * SAMPLE_SECONDS,
        "step_seconds": step * SAMPLE_SECONDS,
        "steps": count,
        "left_out": history.left_out,
    }
    # The answer is made as the client takes it: whole, it has up to 20 MB.
    pieces = _pieces(history, call.caller, head, (first, count * step, step), jobs=jobs, ports=ports)
    return Reply(HTTPStatus.OK, stream=in_parts(pieces))


def _pieces(
    history: History,
    caller: Caller,
    head: dict[str, float],
    span: tuple[int, int, int],
    *,
    jobs: Sequence[str],
    ports: Sequence[str],
) -> Iterator[bytes]:
    """Yields the JSON of a ``wire.HistoryView``.

    Samples that are forgotten meanwhile are null, and a job whose name others have taken meanwhile is left out.
    """
    yield json.dumps(head)[:-1].encode() + b',"jobs":{'
    between = ""
    for name in jobs:
        if may_see(caller, name, history.users.get(name)):
            yield _member(between, name, JOB_FIELDS, history.job(name, *span))
            between = ","
    yield b'},"ports":{'
    between = ""
    for name in ports:
        yield _member(between, name, PORT_FIELDS, history.port(name, *span))
        between = ","
    yield b"}}"


def _member(between: str, name: str, fields: Sequence[str], values: Numbers) -> bytes:
    columns = values.T.tolist()
    lists = ",".join(f'"{field}":{texts(column)}' for field, column in zip(fields, columns, strict=True))
    return f"{between}{json.dumps(name)}:{{{lists}}}".encode()


def _jobs(services: Services, caller: Caller, asked: str | None) -> list[str]:
    """Returns the jobs to show: those asked for, or all that the caller may see. Raises NotFound.

    A registered job that has no sample yet is left out.
    """
    sampled = {name for name, user in services.history.users.items() if may_see(caller, name, user)}
    new = {name for name in _names(asked or "") if name not in sampled and _is_seen(services, caller, name)}
    return [name for name in _chosen(sampled | new, asked, "job") if name in sampled]


def _is_seen(services: Services, caller: Caller, name: str) -> bool:
    """Returns whether a job is registered, and the caller may see it."""
    try:
        services.registry.job_state(name)
    except NotFound:
        return False
    return may_see(caller, name, services.registry.job_user(name))


def _ports(history: History, caller: Caller, asked: str | None) -> list[str]:
    """Returns the ports to show, of which a tenant sees none. Raises NotFound."""
    return _chosen(set(history.ports) if caller.tenancy is None else set(), asked, "port")


def _chosen(visible: Collection[str], asked: str | None, what: str) -> list[str]:
    if asked is None:
        return sorted(visible)
    names = _names(asked)
    unknown = [name[:80] for name in names if name not in visible]
    if unknown:
        raise NotFound(f"the history has no {what} {', '.join(unknown[:20])}")
    return names


def _names(asked: str) -> list[str]:
    return list(dict.fromkeys(name for name in asked.split(",") if name))


def _step(wanted: int, least: int, *, is_asked: bool) -> int:
    """Returns the samples of a step. ``least`` are as many as make the answer not too large.

    Raises HttpError where fewer are asked for.
    """
    if wanted >= least:
        return wanted
    if not is_asked:
        return least
    errors = [
        ("step", f"the answer would be too large; ask for {least * SAMPLE_SECONDS:g} s or more, or for fewer jobs")
    ]
    raise HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, summary(errors), errors=errors)
