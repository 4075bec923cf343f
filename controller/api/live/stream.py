"""``GET /v1/events``: a stream of server-sent events, each written by one green thread for one client.

No client holds up another one or the controller. A client that does not take what was sent within ``WRITE_SECONDS`` is
disconnected. It may come back with the last id that it has, and gets what it missed, or a gap.
"""

from __future__ import annotations

import logging
import re
import socket
import struct
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import eventlet

from controller.access.caller import Role
from controller.api.http import Call, HttpError, Reply
from controller.api.live.feed import Feed
from controller.api.live.viewers import viewer_of
from controller.api.services import Services
from controller.events.event import alive

LOG = logging.getLogger("trainyard.api")
MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
WRITE_SECONDS = 10.0
LONGEST_SECONDS = 900.0
"""End a stream after this time. The client comes back, and has to show again who it is."""
BUFFER_BYTES = 2**17
"""Limits what the system keeps for a client that does not read."""
TENANT_STREAMS = 64
"""Limits the streams of one tenant."""
_LINGER = struct.pack("ii", 1, 0)
_ID = re.compile(r"[0-9]{1,16}")


def follow_events(services: Services, call: Call) -> Reply:
    """Follow what changes, as server-sent events; a tenant sees its own jobs.

    With Last-Event-ID the stream begins after that event, or with a gap where it is not known any more. The id 0 asks
    for all that is kept.
    """
    feed = services.feed
    viewer, name = viewer_of(call.caller), call.caller.name
    last = _last_id(call, feed)
    open_streams = sum(feed.streams.values())
    if feed.is_closed or open_streams >= feed.most_streams:
        raise _busy(f"there are {open_streams} streams, which is the most")
    if call.caller.role is Role.TENANT and feed.streams.get(name, 0) >= TENANT_STREAMS:
        raise _busy(f"{name} has {TENANT_STREAMS} streams, which is the most for a tenant")
    callers = services.callers

    def run(connection: Any) -> None:
        writer = _Writer(connection)
        feed.enter(name)
        try:
            _follow(
                feed,
                writer,
                last,
                viewer,
                is_over=lambda: services.callers is not callers,
                has_missed=services.metrics.event_gaps.inc,
            )
        except (OSError, eventlet.Timeout) as error:
            LOG.debug("a stream of events has ended: %s", error)
            writer.abort()
        finally:
            feed.leave(name)

    # A proxy that collects the answer would hold events back.
    headers = {"X-Accel-Buffering": "no"}
    return Reply(HTTPStatus.OK, content_type=MEDIA_TYPE, headers=headers, stream=run)


def _follow(
    feed: Feed,
    writer: _Writer,
    last: int,
    viewer: Any,
    *,
    is_over: Callable[[], bool],
    has_missed: Callable[[], None],
) -> None:
    """Write events until the stream is to end. Raises OSError and Timeout where the client does not take them.

    ``has_missed`` is called for each gap.
    """
    until = time.monotonic() + LONGEST_SECONDS
    writer.write(alive(last))
    while not feed.is_closed and not is_over() and time.monotonic() < until:
        batch = feed.ring.after(last)
        sent = feed.together(batch, viewer)
        if batch.missed is not None:
            sent = batch.missed.sent(time.time()) + sent
            has_missed()
        last = batch.last
        if sent:
            writer.write(sent)
        if sent or batch.events:
            eventlet.sleep(0)
        else:
            left = writer.written + HEARTBEAT_SECONDS - time.monotonic()
            if left <= 0:
                writer.write(alive(last))
            else:
                feed.wait(last, min(left, until - time.monotonic()))


class _Writer:
    """Writes to a client. ``written``: when it was written to last, by ``time.monotonic``."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.written = time.monotonic()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER_BYTES)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def write(self, data: bytes) -> None:
        """Write all of ``data``. Raises Timeout where the client does not take it, and OSError where it is gone."""
        with eventlet.Timeout(WRITE_SECONDS):
            self._connection.sendall(data)
        self.written = time.monotonic()

    def abort(self) -> None:
        """Let the end of the connection throw away what the client has not read."""
        try:
            self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER)
        except OSError as error:
            LOG.debug("a stream's connection was gone already: %s", error)


def _last_id(call: Call, feed: Feed) -> int:
    """Returns the id after which the stream begins. Raises HttpError for what is no id."""
    text = call.header("Last-Event-ID")
    if not text:
        return feed.ring.newest
    if _ID.fullmatch(text) is None:
        problem = f"{text[:20]!r} is no id of an event, which has at most 16 digits"
        raise HttpError(HTTPStatus.BAD_REQUEST, f"Last-Event-ID: {problem}", errors=[("Last-Event-ID", problem)])
    return int(text) or feed.ring.first - 1


def _busy(why: str) -> HttpError:
    return HttpError(HTTPStatus.SERVICE_UNAVAILABLE, f"{why}; ask again later", headers={"Retry-After": "5"})
