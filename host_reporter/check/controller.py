"""The controller: whether it answers, whether it is trusted, what the token allows, and how the clocks differ."""

from __future__ import annotations

import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from urllib.parse import quote

from pydantic import ValidationError

from controller.wire import CallerView
from host_reporter.check.verdict import Verdict, missing, note, ok
from host_reporter.options import Options
from host_reporter.uplink.connection import Address, Answer, Connection, UnreachableError

CHECK, CLOCK = "controller", "clock"
MOST_OFFSET_SECONDS = 2.0
"""The clocks may differ by this much: the date of an answer has whole seconds, and the answer takes its time."""


def check(options: Options, address: Address) -> Iterator[Verdict]:
    """Yields how the controller answers this host."""
    if options.is_alone:
        yield ok(CHECK, "none is needed: TensorLights runs on this host alone")
        return
    connection = Connection(address)
    try:
        began = time.time()
        caller = connection.request("GET", "/v1/caller")
        offset = clock_offset(caller.date, began, time.time())
        plan = connection.request("GET", f"/v1/hosts/{quote(options.host)}/plan")
    except UnreachableError as error:
        would_help = "--controller names its address; is it running, and may this host reach it?"
        yield missing(CHECK, f"{address.url} does not answer: {error}", would_help)
        return
    finally:
        connection.close()
    yield from encryption(address)
    yield caller_verdict(caller, options)
    if caller.status == HTTPStatus.OK and options.enrol_token_file is None:
        yield plan_verdict(plan, options.host)
    if offset is not None:
        yield clock_verdict(offset)


def encryption(address: Address) -> Iterator[Verdict]:
    """Yields whether the token can be read on its way."""
    if address.is_open:
        would_help = "give the controller a certificate, and use https"
        yield note(CHECK, "the token crosses the network unencrypted", would_help)
    elif address.url.startswith("https:"):
        yield ok(CHECK, "its certificate is trusted")


def caller_verdict(answer: Answer, options: Options) -> Verdict:
    """Returns what the token, or the certificate, allows."""
    text = f"what answers at {options.controller} is no controller of this version"
    stranger = missing(CHECK, text, "--controller names its address")
    if answer.status == HTTPStatus.NOT_FOUND:
        return stranger
    if answer.status != HTTPStatus.OK:
        would_help = "trainyard token --role host makes a token; --token-file names it"
        return missing(CHECK, f"it refuses this host: {answer.detail}", would_help)
    try:
        caller = CallerView.model_validate_json(answer.body)
    except ValidationError:
        return stranger
    known = f"it answers, and knows this host as {caller.name} ({caller.role})"
    wanted = "enrol" if options.enrol_token_file is not None else "host"
    if caller.role == wanted:
        return ok(CHECK, known)
    if caller.role == "operator":
        return note(CHECK, known, f"an agent needs no operator's token: trainyard token --role {wanted} makes another")
    return missing(CHECK, known, f"the agent needs a token of the role {wanted}")


def plan_verdict(answer: Answer, host: str) -> Verdict:
    """Returns whether the controller has a plan for this host."""
    if answer.status in (HTTPStatus.OK, HTTPStatus.SERVICE_UNAVAILABLE):
        return ok(CHECK, f"host {host} is known there")
    return missing(
        CHECK,
        f"host {host} has no plan: {answer.detail}",
        "--host gives the name that the settings have; or add the host there, or have it enrol (--enrol-token-file)",
    )


def clock_offset(date: str | None, began: float, ended: float) -> float | None:
    """Returns how far the controller's clock is ahead of this host's, in seconds; None: the answer has no date.

    ``date`` is as RFC 9110 (section 6.6.1) writes it, in whole seconds. ``began`` and ``ended`` are when the request
    was sent and answered, by this host's clock.
    """
    try:
        told = parsedate_to_datetime(date).timestamp() if date is not None else None
    except ValueError:
        return None
    return told + 0.5 - (began + ended) / 2 if told is not None else None


def clock_verdict(offset: float) -> Verdict:
    """Returns whether the clocks agree."""
    if abs(offset) <= MOST_OFFSET_SECONDS:
        return ok(CLOCK, "it agrees with the controller's, as far as whole seconds show")
    way = "behind" if offset > 0 else "ahead of"
    text = f"it is about {abs(offset):.0f} s {way} the controller's; the controller corrects the times of reports"
    return note(CLOCK, text, "set it by NTP: timedatectl set-ntp true")
