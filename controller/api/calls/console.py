"""The calls that a browser makes for the console. They have no data of the cluster, and need no token."""

from __future__ import annotations

from functools import cache
from http import HTTPStatus

import eventlet.tpool

from controller.api.auth import CERTIFICATE
from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.console import PAGE
from controller.console.static import OVER_TLS, StaticFile, static_files

_LARGE = 2**17
"""Compress a file of more bytes in a thread of its own: all other requests would wait for it."""


def console_page(services: Services, call: Call) -> Reply:
    """Read the console's page."""
    is_asked = not services.callers.is_open and call.environ.get(CERTIFICATE) is None
    return _sent(_asking_page() if is_asked else static_files()[PAGE], call)


@cache
def _asking_page() -> StaticFile:
    """Returns the page that asks for a token at once, and not only after a call without one was refused."""
    page = static_files()[PAGE]
    return StaticFile(page.content.replace(b"<html ", b'<html data-token="asked" ', 1), page.media_type)


def console_file(_services: Services, call: Call) -> Reply:
    """Read a file of the console."""
    name = call.path["path"]
    file = static_files().get(name)
    if file is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"the console has no file {name[:80]!r}")
    return _sent(file, call)


def _sent(file: StaticFile, call: Call) -> Reply:
    known, accepted = call.header("If-None-Match"), call.header("Accept-Encoding")
    if len(file.content) > _LARGE and not file.is_compressed:
        answer = eventlet.tpool.execute(file.answer, known, accepted)
    else:
        answer = file.answer(known, accepted)
    headers = {**answer.headers, **(OVER_TLS if call.environ.get("wsgi.url_scheme") == "https" else {})}
    return Reply(answer.status, answer.body, content_type=file.media_type, headers=headers)
