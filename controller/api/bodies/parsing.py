"""Parses a body into a message, as strictly as the files that people write.

Nothing here needs eventlet: a large body is parsed in another process.
"""

from __future__ import annotations

import codecs
import json
from http import HTTPStatus
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from controller.api.errors import from_validation, summary
from controller.api.http import HttpError
from controller.documents import json_lines
from controller.documents.document import DocumentError

Body = TypeVar("Body", bound=BaseModel)
_BYTE_ORDER_MARKS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def parse(raw: bytes, model: type[Body]) -> Body:
    """Returns a body as a message. Raises HttpError: 400 if it is not JSON, 422 with each wrong field.

    A duplicate key is an error, because two readers of the same body could use either value.
    """
    if raw.startswith(_BYTE_ORDER_MARKS):
        problem = "it begins with a byte order mark; send UTF-8 without one"
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body is not valid JSON: {problem}")
    try:
        message = model.model_validate_json(raw)
    except ValidationError as error:
        raise from_validation(error, model) from None
    try:
        _DECODER.decode(raw.decode())
    except (ValueError, RecursionError):
        raise _fault(raw) from None
    return message


def _fault(raw: bytes) -> HttpError:
    """Returns the error of a body that the model has accepted, from the slower reader that knows where it is."""
    try:
        json_lines.parse(raw.decode(errors="replace"))
    except DocumentError as error:
        errors = [(".".join(map(str, error.path)) or "(body)", error.problem)]
        return HttpError(HTTPStatus.UNPROCESSABLE_ENTITY, summary(errors), errors=errors)
    return HttpError(HTTPStatus.BAD_REQUEST, "the body is not valid JSON: it is not UTF-8 throughout")


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> None:
    """Raises ValueError for an object with a duplicate key. Nested objects have been checked before."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError


def _refuse(constant: str) -> None:
    raise ValueError(constant)


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_duplicates, parse_constant=_refuse)
