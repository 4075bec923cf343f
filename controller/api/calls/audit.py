"""The call on the audit: who has changed what."""

from __future__ import annotations

from http import HTTPStatus

from controller.api.bodies.query import integer
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.wire import AuditRecord, AuditTrail

LIMIT, MAX_LIMIT = 100, 1000
_MOST = 10**15 - 1


def read_audit(services: Services, call: Call) -> Reply:
    """Read who has changed what, and who was refused."""
    log = services.audit
    since = integer(call.query, "since", 0, _MOST)
    limit = integer(call.query, "limit", 1, MAX_LIMIT) or LIMIT
    try:
        links = log.newest(limit) if since is None else log.since(since, limit)
    except OSError as error:
        raise HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"the audit file cannot be read: {error.strerror}") from error
    return Reply.of(
        AuditTrail(
            records=tuple(AuditRecord.model_validate(dict(each.content)) for each in links),
            newest=log.head.number,
            newest_hash=log.head.hash,
            lost=log.lost,
            problem=log.problem,
        )
    )
