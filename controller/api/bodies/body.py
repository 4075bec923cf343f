"""Reads request bodies, within limits of size and time."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import eventlet

from controller.api.http import JSON, Call, HttpError
from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.declared.parts.part import Part
from controller.wire import MAX_BODY_BYTES, HostPut, Settings, StageSpec

if TYPE_CHECKING:
    from controller.api.services import Services

BODY_SECONDS = 20.0


def read_job(services: Services, call: Call) -> Declared:
    """Returns the body as a job's declaration. Raises HttpError if it is wrong, or 503 if too many bodies wait."""
    declared: Declared = _read(services, call, "job")
    return declared


def read_part(services: Services, call: Call) -> Part:
    """Returns the body as what a host knows of a job. Raises HttpError as ``read_job``."""
    part: Part = _read(services, call, "part")
    return part


def read_report(services: Services, call: Call) -> Batch:
    """Returns the body as a host's report. Raises HttpError as ``read_job``."""
    batch: Batch = _read(services, call, "report")
    return batch


def read_stage(services: Services, call: Call) -> StageSpec:
    """Returns the body as the jobs of a stage. Raises HttpError as ``read_job``."""
    spec: StageSpec = _read(services, call, "stage")
    return spec


def read_settings(services: Services, call: Call) -> Settings:
    """Returns the body as settings. Raises HttpError as ``read_job``."""
    settings: Settings = _read(services, call, "settings")
    return settings


def read_host(services: Services, call: Call) -> HostPut:
    """Returns the body as a host's request, or a decision on one. Raises HttpError as ``read_job``."""
    put: HostPut = _read(services, call, "host")
    return put


def _read(services: Services, call: Call, kind: str) -> Any:
    body = services.workers.make(kind, read_raw(call.environ), _client(call))
    call.on_body(body)
    return body


def _client(call: Call) -> str:
    """Returns whose body it is: that of the token's owner, or without tokens that of the client's address."""
    if call.caller.proof == "none":
        return f"address {call.environ.get('REMOTE_ADDR', '')}"
    return f"{call.caller.role} {call.caller.name}"


def read_raw(environ: dict[str, Any], *, seconds: float = BODY_SECONDS) -> bytes:
    """Returns the body. Raises HttpError by its announced length, or as soon as it is too large.

    Raises it, too, where the body takes longer than ``seconds``.
    """
    media_type = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if media_type != JSON:
        named = f"is {media_type!r}" if environ.get("HTTP_CONTENT_TYPE") or media_type else "is missing"
        raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type {named}; send {JSON}", close=True)
    if environ.get("HTTP_CONTENT_ENCODING", "identity").strip().lower() != "identity":
        raise HttpError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "compressed bodies are not accepted", close=True)
    too_large = HttpError(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        f"the body is larger than {MAX_BODY_BYTES} bytes; send less at once",
        close=True,
    )
    if int(environ.get("CONTENT_LENGTH") or 0) > MAX_BODY_BYTES:
        raise too_large
    body = _read_in_time(environ["wsgi.input"].read, seconds)
    if len(body) > MAX_BODY_BYTES:
        raise too_large
    if len(body) < int(environ.get("CONTENT_LENGTH") or 0):
        raise HttpError(HTTPStatus.BAD_REQUEST, "the connection ended in the middle of the body", close=True)
    return body


def _read_in_time(read_bytes: Callable[[int], bytes], seconds: float) -> bytes:
    deadline = eventlet.Timeout(seconds)
    try:
        return read_bytes(MAX_BODY_BYTES + 1)
    except (eventlet.Timeout, TimeoutError) as timeout:
        if isinstance(timeout, eventlet.Timeout) and timeout is not deadline:
            raise
        raise HttpError(HTTPStatus.REQUEST_TIMEOUT, f"the body did not come within {seconds:g} s", close=True) from None
    except (OSError, ValueError) as error:
        raise HttpError(HTTPStatus.BAD_REQUEST, f"the body cannot be read: {error}", close=True) from None
    finally:
        deadline.cancel()
