"""Asks the controller to add this host, until an operator has approved it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from pydantic import ValidationError

from controller.wire import CallerView, HostPut, HostRequest, HostView
from controller.wire.announcement import Announcement
from controller.wire.hosts import MAX_ADDRESSES
from host_reporter.enrolment.announcer import announce
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts, look, own_address
from host_reporter.enrolment.own_token import OwnToken
from host_reporter.notices import Notices
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import Address, Answer, Connection, UnreachableError

ANNOUNCE_SECONDS = 2.0
"""Announce the host this often while it is looked for: switches hand announcements on for a while at a time."""
REFUSED_SECONDS = 60.0
"""Ask again this long after a refusal."""
LOOKED_FOR_TRIES = 3
"""Once it is approved, wait for this many answers at most until the host's port is found."""
_KEY = "enrolment"
_LATER = (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE)


class Asking(Protocol):
    """Makes calls, as ``Connection`` does."""

    def request(self, method: str, path: str, body: str | None = None) -> Answer:
        """Returns the answer to a call. Raises UnreachableError."""


class Enrolling(NamedTuple):
    """What the agent enrols with.

    ``host`` is its name. ``rate_bps`` is the rate that the options give. ``facts`` returns what there is to say of the
    interface now, and raises InterfaceError. ``send`` sends an announcement and returns why it could not. ``sleep``
    waits some seconds.
    """

    host: str
    rate_bps: float | None
    facts: Callable[[], InterfaceFacts]
    send: Callable[[str, str, Announcement], str | None] = announce
    sleep: Callable[[float], None] = time.sleep


def enrol(
    address: Address, token: OwnToken, host: str, notices: Notices, *, interface: str | None, rate_bps: float | None
) -> Address:
    """Returns the address of the controller with the host's own token, once the host is approved.

    ``address`` has the enrolment token. A token that was approved before needs no enrolment. ``interface`` and
    ``rate_bps`` are those of the options; None: the interface is that towards the controller, and it tells its rate.
    Raises OwnTokenError.
    """
    was_there = token.is_there()
    sha256 = token.sha256()
    own = replace(address, token_file=token.path)
    if was_there and _is_known(Connection(own), host):
        return own
    where = urlsplit(address.url)
    port = where.port or (443 if where.scheme == "https" else 80)

    def facts() -> InterfaceFacts:
        return look(interface, own_address(str(where.hostname), port))

    wait_for_approval(Connection(address), sha256, Enrolling(host, rate_bps, facts), notices)
    return own


def _is_known(connection: Asking, host: str) -> bool:
    """Returns whether the token of a connection is that of an approved host."""
    try:
        answer = connection.request("GET", "/v1/caller")
        caller = CallerView.model_validate_json(answer.body) if answer.status == HTTPStatus.OK else None
    except (UnreachableError, ValidationError):
        return False
    return caller is not None and (caller.role, caller.name) == ("host", host)


def wait_for_approval(connection: Asking, token_sha256: str, enrolling: Enrolling, notices: Notices) -> None:
    """Ask until the host is approved, and announce it as long as its port is looked for."""
    backoff = Backoff(first_seconds=1.0, most_seconds=30.0)
    tries = 0
    while True:
        try:
            facts = enrolling.facts()
            answer = connection.request("PUT", f"/v1/hosts/{enrolling.host}", _request(facts, token_sha256, enrolling))
        except InterfaceError as error:  # it may come up later
            notices.say(_KEY, f"the host cannot enrol: {error}")
            enrolling.sleep(backoff.next_seconds())
            continue
        except UnreachableError as error:
            notices.say(_KEY, f"the host cannot enrol, the controller does not answer: {error}")
            enrolling.sleep(backoff.next_seconds())
            continue
        if answer.status in _LATER:  # many hosts ask at a time
            enrolling.sleep(backoff.next_seconds())
            continue
        backoff.reset()
        view = _understood(answer, notices)
        if view is None:
            enrolling.sleep(REFUSED_SECONDS)
            continue
        _say(view, enrolling.host, notices)
        tries += view.state == "approved"
        if view.state == "approved" and (view.announcement is None or tries > LOOKED_FOR_TRIES):
            return
        if view.state == "refused":
            enrolling.sleep(REFUSED_SECONDS)
        else:
            _announce_for(view.ask_again_seconds or REFUSED_SECONDS, view.announcement, facts, enrolling, notices)


def _request(facts: InterfaceFacts, token_sha256: str, enrolling: Enrolling) -> str:
    rate = enrolling.rate_bps or facts.rate_bps
    request = HostRequest.model_construct(
        addresses=facts.addresses[:MAX_ADDRESSES],
        interface=facts.name,
        mac=facts.mac,
        ingress_bps=rate,
        egress_bps=rate,
        token_sha256=token_sha256,
    )
    return HostPut.model_construct(request=request).model_dump_json(exclude_none=True)


def _understood(answer: Answer, notices: Notices) -> HostView | None:
    """Returns what the controller says of the host; None where it refuses to say anything, which is logged."""
    if answer.status in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED):
        notices.say(_KEY, "the host cannot enrol: the controller is older than this agent and adds no hosts")
        return None
    try:
        if answer.status in (HTTPStatus.OK, HTTPStatus.CREATED):
            return HostView.model_validate_json(answer.body)
    except ValidationError:
        notices.say(_KEY, "the host cannot enrol: what answers is no controller of this version")
        return None
    notices.say(_KEY, f"the host cannot enrol: {answer.detail}")
    return None


def _say(view: HostView, host: str, notices: Notices) -> None:
    match view.state:
        case "pending":
            text = f"host {host} waits to be approved: an operator runs trainyard hosts approve {host}"
            notices.say(_KEY, text, logging.INFO)
        case "refused":
            notices.say(_KEY, f"an operator has refused host {host}; trainyard hosts remove {host} lets it ask anew")
        case _:
            notices.say(_KEY, f"host {host} is approved", logging.INFO)


def _announce_for(
    seconds: float, secret: str | None, facts: InterfaceFacts, enrolling: Enrolling, notices: Notices
) -> None:
    """Wait, and announce the host meanwhile if it is looked for."""
    while seconds > 0:
        if secret is not None and facts.mac is not None:
            why_not = enrolling.send(facts.name, enrolling.host, Announcement(facts.mac, secret))
            if why_not is not None:
                notices.say("announcement", f"the host cannot be found at its switch: {why_not}")
                secret = None
        step = min(ANNOUNCE_SECONDS, seconds) if secret is not None else seconds
        enrolling.sleep(step)
        seconds -= step
