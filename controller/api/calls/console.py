"""The calls that a browser makes for the console. They have no data of the cluster, and need no token."""

from __future__ import annotations

from http import HTTPStatus

import eventlet.tpool

from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.console import PAGE
from controller.console.static import StaticFile, static_files

_LARGE = 2**17
"""Compress a file of more bytes in a thread of its own: all other requests would wait for it."""


def console_page(_services: Services, call: Call) -> Reply:
    """Read the console's page."""
    return _sent(static_files()[PAGE], call)


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
    return Reply(answer.status, answer.body, content_type=file.media_type, headers=answer.headers)
