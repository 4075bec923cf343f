"""The calls on families: what is kept of jobs that have ended."""

from __future__ import annotations

import re
from http import HTTPStatus

from controller.api.http import Call, Reply
from controller.api.services import Services
from controller.families.history import FamilyHistory
from controller.families.names import FamilyKey
from controller.families.run import EarlierRun
from controller.families.sentence import sentence
from controller.refusals import Invalid
from controller.steps import in_steps
from controller.wire import PRINTABLE_PATTERN, FamilyList, FamilyRun, FamilyRuns, FamilyState, FamilySummary

MAX_NAME = 127
_PRINTABLE = re.compile(PRINTABLE_PATTERN)


def list_families(services: Services, _call: Call) -> Reply:
    """List all families and what they say of the next run."""
    views = in_steps(services.registry.families_in_steps())
    return Reply.of(FamilyList(families=tuple(_summary(key, history) for key, history in views)))


def get_family(services: Services, call: Call) -> Reply:
    """Read the runs of a family; where several owners have one of this name, of each."""
    views = services.registry.families(_name(call), call.query.get("user"))
    return Reply.of(
        FamilyRuns(
            families=tuple(
                FamilyState(**dict(_summary(key, history)), runs=tuple(map(_run, history.runs)))
                for key, history in views
            )
        )
    )


def delete_family(services: Services, call: Call) -> Reply:
    """Forget the runs of a family; where several owners have one of this name, of each."""
    services.registry.delete_family(_name(call), call.query.get("user"), call.received_at)
    services.journal.commit()
    return Reply(HTTPStatus.NO_CONTENT)


def _name(call: Call) -> str:
    """Returns the name of the family in the path. Raises Invalid where no family can have it."""
    try:
        # In WSGI each byte of a path is a Latin-1 character.
        name = call.path["name"].encode("latin-1").decode()
    except UnicodeDecodeError:
        raise Invalid([("name", "it is not UTF-8, percent-encoded")]) from None
    if len(name) > MAX_NAME or _PRINTABLE.fullmatch(name) is None:
        raise Invalid([("name", f"a family's name has at most {MAX_NAME} characters, and no control characters")])
    return name


def _summary(key: FamilyKey, history: FamilyHistory) -> FamilySummary:
    return FamilySummary(
        name=key.name,
        user=key.owner.user,
        host=key.owner.host,
        kept=len(history.runs),
        counted=history.counted,
        reliable=history.gate.is_open,
        summary=sentence(history),
    )


def _run(run: EarlierRun) -> FamilyRun:
    return FamilyRun(
        job=run.job,
        ended_at=run.ended_at,
        ending=run.ending.value,
        reason=run.reason,
        metric=run.metric,
        direction=run.direction,
        iterations=run.length,
        converged=run.converged,
        t90_iteration=run.t90,
        t90_share=run.share_t90,
        t95_iteration=run.t95,
        t95_share=run.share_t95,
        curve=run.curve,
    )
