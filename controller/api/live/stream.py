"""``GET /v1/events``: a stream of server-sent events, each written by one green thread for one client.

No client holds up another one or the controller. A client that does not take what was sent within a few seconds is
disconnected. It may come back with the last id that it has, and gets what it missed, or a gap.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import eventlet

from controller.access.caller import Role
from controller.api.http import Call, HttpError, Reply
from controller.api.live.feed import Feed
from controller.api.live.viewers import viewer_of
from controller.api.live.writer import Writer
from controller.api.services import Services
from controller.events.event import alive

LOG = logging.getLogger("trainyard.api")
MEDIA_TYPE = "text/event-stream"
HEARTBEAT_SECONDS = 15.0
LONGEST_SECONDS = 900.0
"""End a stream after this time. The client comes back, and has to show again who it is."""
TENANT_STREAMS = 64
"""Limits the streams of one tenant."""
_ID = re.compile(r"[0-9]{1,16}")


def follow_events(services: Services, call: Call) -> Reply:
    """Follow what changes, as server-sent events; a tenant sees its own jobs.

    With Last-Event-ID the stream begins after that event, or with a gap where it is not known any more. The id 0 asks
    for all that is kept.
    """
    feed = services.feed
    caller, viewer = call.caller, viewer_of(call.caller)
    last = _last_id(call, feed)
    open_streams = sum(feed.streams.values())
    if feed.is_closed:
        raise _busy("the controller stops")
    if open_streams >= feed.most_streams:
        raise _busy(f"there are {open_streams} streams, which is the most")
    if caller.role is Role.TENANT and feed.streams[caller] >= TENANT_STREAMS:
        raise _busy(f"{caller.name} has {TENANT_STREAMS} streams, which is the most for a tenant")
    callers = services.callers

    def run(connection: Any) -> None:
        writer = Writer(connection)
        feed.enter(caller)
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
            feed.leave(caller)

    # A proxy that collects the answer would hold events back.
    headers = {"X-Accel-Buffering": "no"}
    return Reply(HTTPStatus.OK, content_type=MEDIA_TYPE, headers=headers, stream=run)


def _follow(
    feed: Feed,
    writer: Writer,
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
    while not is_over() and time.monotonic() < until:
        # What was told before the end is sent: after a restart it is not known any more.
        is_last = feed.is_closed
        batch = feed.ring.after(last)
        sent = feed.together(batch, viewer)
        if batch.missed is not None:
            sent = batch.missed.sent(time.time()) + sent
            has_missed()
        last = batch.last
        if sent:
            writer.write(sent)
        if is_last and not batch.events:
            return
        if sent or batch.events:
            eventlet.sleep(0)
        else:
            left = writer.written + HEARTBEAT_SECONDS - time.monotonic()
            if left <= 0:
                writer.write(alive(last))
            else:
                feed.wait(last, min(left, until - time.monotonic()))


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
