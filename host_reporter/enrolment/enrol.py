"""Asks the controller to add this host, until an operator has approved it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

from pydantic import ValidationError

from controller.wire import CallerView, HostView
from controller.wire.announcement import Announcement
from host_reporter.enrolment.announcer import announce
from host_reporter.enrolment.interface import InterfaceError, InterfaceFacts, own_address
from host_reporter.enrolment.interfaces import look_at_all
from host_reporter.enrolment.kept_secret import KeptSecret
from host_reporter.enrolment.own_token import OwnToken
from host_reporter.enrolment.requests import Requests
from host_reporter.notices import Notices
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import Address, Answer, Connection, UnreachableError

ANNOUNCE_SECONDS = 2.0
"""Announce the host this often while it is looked for: switches hand announcements on for a while at a time."""
REFUSED_SECONDS = 60.0
"""Ask again this long after a refusal."""
IPV4_SECONDS = 30.0
"""Wait this long for the first interface's IPv4 address: DHCP may take longer than IPv6, and the addresses that a
waiting host told first stay."""
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

    ``host`` is its name. ``rates`` are those that the options give, by interface. ``facts`` returns what there is to
    say of each interface now, the first one first, and raises InterfaceError. ``send`` sends an announcement and
    returns why it could not. ``sleep`` waits some seconds.
    """

    host: str
    rates: Mapping[str, float]
    facts: Callable[[], Sequence[InterfaceFacts]]
    send: Callable[[str, str, Announcement], str | None] = announce
    sleep: Callable[[float], None] = time.sleep


def enrol(
    address: Address,
    folder: Path,
    host: str,
    notices: Notices,
    *,
    interfaces: Sequence[str],
    rates: Mapping[str, float],
    sleep: Callable[[float], None] = time.sleep,
) -> Address:
    """Returns the address of the controller with the host's own token, once the host is approved.

    ``address`` has the enrolment token, and ``folder`` keeps what the host makes or is told. A token that was approved
    before needs no enrolment. ``interfaces`` are those of the options, with the ``rates`` that these give. Without any
    they are that towards the controller, and the ones beside it. Raises OwnTokenError.
    """
    token, kept = OwnToken(folder, host), KeptSecret(folder, host)
    was_there = token.is_there()
    sha256 = token.sha256()
    own = replace(address, token_file=token.path)
    if was_there:
        with closing(Connection(own)) as connection:
            if _is_known(connection, host):
                return own
    facts = waiting_for_ipv4(facts_of(address, interfaces, is_whole=True))
    enrolling = Enrolling(host, rates, facts, sleep=sleep)
    with closing(Connection(address)) as connection:
        secret = wait_for_approval(connection, sha256, enrolling, notices)
    if secret is not None:
        try:
            kept.write(secret)
        except OSError as error:
            notices.say("announcement", f"{kept.path}: a change of the host's cable is not noticed: {error.strerror}")
    return own


def facts_of(
    address: Address, interfaces: Sequence[str], *, is_whole: bool
) -> Callable[[], tuple[InterfaceFacts, ...]]:
    """Returns what looks at the interfaces that the host enrols with; ``address`` is the controller's."""
    where = urlsplit(address.url)
    port = where.port or (443 if where.scheme == "https" else 80)
    return lambda: look_at_all(interfaces, own_address(str(where.hostname), port), is_whole=is_whole)


def waiting_for_ipv4(
    facts: Callable[[], Sequence[InterfaceFacts]], clock: Callable[[], float] = time.monotonic
) -> Callable[[], Sequence[InterfaceFacts]]:
    """Returns ``facts`` that also raise InterfaceError while the first interface has had IPv6 alone for a short time.

    ``clock`` returns seconds, and never goes back.
    """
    since: float | None = None

    def look() -> Sequence[InterfaceFacts]:
        nonlocal since
        found, now = facts(), clock()
        since = now if since is None else since
        if not found[0].ipv4 and now - since < IPV4_SECONDS:
            text = f"{found[0].name} has no IPv4 address yet; after {IPV4_SECONDS:g} s the host enrols with IPv6 alone"
            raise InterfaceError(text)
        return found

    return look


def _is_known(connection: Asking, host: str) -> bool:
    """Returns whether the token of a connection is that of an approved host."""
    try:
        answer = connection.request("GET", "/v1/caller")
        caller = CallerView.model_validate_json(answer.body) if answer.status == HTTPStatus.OK else None
    except (UnreachableError, ValidationError):
        return False
    return caller is not None and (caller.role, caller.name) == ("host", host)


def wait_for_approval(connection: Asking, token_sha256: str, enrolling: Enrolling, notices: Notices) -> str | None:
    """Ask until the host is approved, and announce it as long as its port is looked for.

    Returns what it is to announce itself with; None: it was never looked for.
    """
    requests = Requests(token_sha256, enrolling.rates)
    backoff = Backoff(first_seconds=1.0, most_seconds=30.0)
    secret: str | None = None
    tries = 0
    while True:
        try:
            facts = enrolling.facts()
            answer = connection.request("PUT", f"/v1/hosts/{enrolling.host}", requests.body(facts))
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
        if requests.is_too_new(answer):
            text = f"the controller is older than this agent: it is told {facts[0].name} alone, and no IPv6 address"
            notices.say("interfaces", text)
            continue
        view = _understood(answer, notices)
        if view is None:
            enrolling.sleep(REFUSED_SECONDS)
            continue
        _say(view, enrolling.host, notices)
        secret = view.announcement or secret
        tries += view.state == "approved"
        if view.state == "approved" and (view.announcement is None or tries > LOOKED_FOR_TRIES):
            return secret
        if view.state == "refused":
            enrolling.sleep(REFUSED_SECONDS)
        else:
            _announce_for(view.ask_again_seconds or REFUSED_SECONDS, view.announcement, facts, enrolling, notices)


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
    seconds: float, secret: str | None, facts: Sequence[InterfaceFacts], enrolling: Enrolling, notices: Notices
) -> None:
    """Wait, and announce all interfaces of the host meanwhile if it is looked for."""
    found = [(each.name, each.mac) for each in facts if each.mac is not None]
    while seconds > 0:
        if secret is not None:
            said = [enrolling.send(name, enrolling.host, Announcement(mac, secret)) for name, mac in found]
            if (why_not := next((each for each in said if each is not None), None)) is not None:
                notices.say("announcement", f"the host cannot be found at its switch: {why_not}")
            secret = None if all(said) else secret
        step = min(ANNOUNCE_SECONDS, seconds) if secret is not None else seconds
        enrolling.sleep(step)
        seconds -= step
