"""Every error of the API as a problem document (RFC 9457)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from controller.api.http import HttpError, Reply
from controller.documents.faults import described
from controller.refusals import Conflict, Invalid, NotAllowed, NotFound, Refused, Unavailable
from controller.wire import Problem

MEDIA_TYPE = "application/problem+json"
MOST_FAULTS = 50
"""Name so many wrong fields of a body."""


def problem(error: HttpError, path: str) -> Reply:
    """Returns an error as a reply.

    ``path`` is the request's path as in WSGI, where each byte is a Latin-1 character.
    """
    document = Problem(
        title=error.status.phrase,
        status=int(error.status),
        detail=error.detail,
        instance=quote(path[:200], encoding="latin-1"),
        errors=tuple(map(_as_mapping, error.errors)),
    )
    return Reply(
        int(error.status),
        document.model_dump_json(exclude_none=True).encode(),
        content_type=MEDIA_TYPE,
        headers=error.headers,
        close=error.close,
    )


def _as_mapping(error: tuple[str, str] | Mapping[str, str]) -> dict[str, str]:
    return dict(error) if isinstance(error, Mapping) else {"field": error[0], "detail": error[1]}


def from_refusal(refused: Refused) -> HttpError:
    """Returns a refusal of the registry or the loop as an HTTP error."""
    if isinstance(refused, Invalid):
        return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, summary(refused.errors), errors=refused.errors)
    if isinstance(refused, NotFound):
        return HttpError(HTTPStatus.NOT_FOUND, str(refused))
    if isinstance(refused, NotAllowed):
        return HttpError(HTTPStatus.FORBIDDEN, str(refused))
    if isinstance(refused, Unavailable):
        return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, str(refused), headers={"Retry-After": "1"})
    assert isinstance(refused, Conflict)
    return HttpError(HTTPStatus.CONFLICT, str(refused), errors=refused.errors)


def from_validation(error: ValidationError, model: type[BaseModel]) -> HttpError:
    """Returns the error for a body that is not JSON (400, with line and column), or that has wrong fields (422).

    ``model`` is what the body should have been.
    """
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if first["type"] == "json_invalid":
        return HttpError(HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: {first['msg']}")
    errors = [(".".join(map(str, path)) or "(body)", said) for path, said in described(error, None, model, MOST_FAULTS)]
    return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, summary(errors), errors=errors)


def summary(errors: Sequence[tuple[str, str]]) -> str:
    """Returns the first of several (field, what is wrong) as a sentence, and how many more there are."""
    field, detail = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{field}: {detail}{more}"
