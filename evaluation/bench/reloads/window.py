"""What is seen in a time with reloads, and in one without: what was touched, lost and refused."""

from __future__ import annotations

import copy
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from controller.dataplane.queues.numbers import queue_of
from controller.model import MAX_CLASSES
from evaluation.bench.reloads import observed
from evaluation.bench.reloads.changes import (
    CHANGES,
    GONE_HOST,
    GONE_HOST_RULES,
    OTHER_POLICY,
    TURNING,
    Change,
    Settings,
)
from evaluation.bench.reloads.streams import Numbered
from evaluation.bench.reloads.yard import Yard, open_connections
from evaluation.bench.support.waiting import wait_until

PACE_SECONDS = 2.0
"""Begin a reload so long after the one before, where it is in force by then."""
WARM_UP_SECONDS = 3.0
FORCE_SECONDS = 30.0
PATH_PORTS = ("s1-eth3", "s4-eth2", "s2-eth1", "s2-eth3", "s4-eth1", "s1-eth1")
"""The switch ports that packets from h1 to h3 and back leave by. No change concerns them but those of all floors."""
DEFAULT_FLOORS: Mapping[str, float] = {"job_class": 0.01, "other": 0.1}


@dataclass(frozen=True, slots=True)
class Reload:
    """One reload: its change, whether it takes it ``back``, the status of its answer, and how long that took.

    ``floors_seconds`` is the time from the request until the kernel had all minimum rates; None: none was to change.
    """

    name: str
    status: int
    seconds: float
    floors_seconds: float | None
    back: bool


@dataclass
class Window:
    """All that was seen in a time.

    ``touched_rules`` and ``touched_queues`` are those that no reload concerned. ``touched_wrongly`` is what a refused
    file has changed. ``rules`` and ``queues`` are how many rules and rows of queues there were. ``dropped`` are packets
    that queues on the streams' way dropped. ``numbered`` has numbered packets by port. ``requests`` are those on open
    connections, of which some were ``refused``, and some lost with connections that ``broke``.
    """

    seconds: float = 0.0
    reloads: list[Reload] = field(default_factory=list)
    touched_rules: list[str] = field(default_factory=list)
    touched_queues: list[str] = field(default_factory=list)
    touched_wrongly: list[str] = field(default_factory=list)
    rules: int = 0
    queues: int = 0
    dropped: int = 0
    numbered: dict[int, Numbered] = field(default_factory=dict)
    tcp_bps: float = 0.0
    requests: int = 0
    refused: int = 0
    broke: int = 0


@dataclass(frozen=True, slots=True)
class Look:
    """What the switches hold, and when the settings were loaded. It was taken between two moments (monotonic)."""

    began: float
    ended: float
    rules: observed.Rules
    queues: observed.Queues
    counts: observed.Counts
    loaded_at: float


def with_reloads(yard: Yard, rounds: int) -> Window:
    """Returns what is seen while each change is made and taken back, so many times. Raises AssertionError."""
    window = Window()
    base = copy.deepcopy(yard.controller.settings)
    with _load(yard, window):
        began = time.monotonic()
        look = _look(yard)
        for number in range(rounds):
            for change in CHANGES:
                for settings, back in ((change.of(base), False), (base, True)):
                    due = time.monotonic() + PACE_SECONDS
                    look = _step(yard, window, change, settings, look, back=back)
                    time.sleep(max(0.0, due - time.monotonic()))
            sys.stderr.write(f"bench reload: {number + 1} of {rounds} rounds\n")
        window.seconds = time.monotonic() - began
    return window


def without_reload(yard: Yard, seconds: float) -> Window:
    """Returns what is seen in the same time while nobody asks for a reload. The switches are looked at as often."""
    window = Window(seconds=seconds)
    with _load(yard, window):
        ended = time.monotonic() + seconds
        look = _look(yard)
        while time.monotonic() < ended:
            time.sleep(PACE_SECONDS)
            look = _compare(window, None, look, _look(yard))
    return window


def expected_floors(settings: Settings) -> dict[str, dict[int, float]]:
    """Returns the minimum rates of the queues that the settings give each port, in bit/s, by port and queue.

    A port whose rate the settings do not give is left out.
    """
    rates = {_port(host["switch"], host["port"]): host["ingress_bps"] for host in settings["hosts"]}
    for link in settings["links"]:
        rates |= {_port(link[end], link[f"{end}_port"]): link["rate_bps"] for end in ("a", "b")}
    shares = DEFAULT_FLOORS | settings.get("floors", {})
    by_queue = {queue_of(k): shares["job_class"] for k in range(MAX_CLASSES)} | {queue_of(None): shares["other"]}
    return {
        port: {queue: float(round(rate * share)) for queue, share in by_queue.items()} for port, rate in rates.items()
    }


def _step(yard: Yard, window: Window, change: Change, settings: Settings, look: Look, *, back: bool) -> Look:
    controller = yard.controller
    is_wrong = change.fields is None and not back
    had = expected_floors(yard.in_force)
    controller.settings = dict(settings)
    controller.write()
    yard.write_tokens(with_ours=change.has_token and not back)
    asked = time.monotonic()
    answer = controller.call("POST", "/v1/reload")
    seconds = time.monotonic() - asked
    _check(change, answer.status_code, answer.json(), is_wrong=is_wrong)
    yard.in_force = yard.in_force if is_wrong else settings
    floors = expected_floors(yard.in_force)
    if floors != had:
        wait_until(lambda: observed.floors(list(floors)) == floors, FORCE_SECONDS, what=f"the floors of: {change.name}")
    floors_seconds = time.monotonic() - asked
    if change.has_token:
        status = controller.call("GET", "/v1/status", token=yard.token).status_code
        assert status == (HTTPStatus.UNAUTHORIZED if back else HTTPStatus.OK), f"the token's status is {status}"
    now = wait_until(lambda: _in_force(yard), FORCE_SECONDS, what=f"the rules of: {change.name}")
    assert now is not None
    sys.stderr.write(f"bench reload: {change.name}{', back' if back else ''}: {1e3 * seconds:.0f} ms\n")
    window.reloads.append(
        Reload(change.name, answer.status_code, seconds, floors_seconds if floors != had else None, back=back)
    )
    return _compare(window, change, look, now, is_wrong=is_wrong)


def _check(change: Change, status: int, answer: Mapping[str, Any], *, is_wrong: bool) -> None:
    """Raises AssertionError where a reload did not do what it should."""
    if is_wrong:
        is_refused = status == HTTPStatus.UNPROCESSABLE_ENTITY and change.refusal in answer["detail"]
        assert is_refused, f"{change.name}: {status} {answer}"
        return
    assert status == HTTPStatus.OK, f"{change.name}: {status} {answer}"
    assert {each["field"] for each in answer["changed"]} == (change.fields or frozenset()), f"{change.name}: {answer}"
    assert not answer["waiting"], f"{change.name}: {answer}"


def _in_force(yard: Yard) -> Look | None:
    """Returns a look at the switches; None where they do not hold the rules of the settings yet."""
    look = _look(yard)
    settings = yard.in_force
    gone = re.compile(GONE_HOST_RULES)
    has_host = any(map(gone.search, look.rules))
    queue_by_port = observed.queue_by_port(look.rules)
    by_class = sorted(TURNING.values(), key=lambda port: queue_by_port.get(port, math.inf))
    is_ordered = (by_class == list(TURNING.values())) == (settings["policy"] != OTHER_POLICY)
    is_there = any(host["name"] == GONE_HOST for host in settings["hosts"])
    return look if is_ordered and has_host == is_there else None


def _look(yard: Yard) -> Look:
    began = time.monotonic()
    rules, queues = observed.rules(yard.network.bridges), observed.queues()
    counts = observed.counts(PATH_PORTS)
    loaded_at = yard.controller.call("GET", "/v1/status").json()["settings_loaded_at"]
    return Look(began, time.monotonic(), rules, queues, counts, loaded_at)


def _compare(window: Window, change: Change | None, before: Look, now: Look, *, is_wrong: bool = False) -> Look:
    """Note what has been touched between two looks, and return the second."""
    ports = before.queues.keys() - (change.ports if change is not None else frozenset())
    rows_only = change is not None and change.rewrites_all
    rules = [
        rule
        for rule in observed.touched_rules(before.rules, now.rules, now.began - before.ended)
        if change is None or not change.may_touch(rule)
    ]
    queues = [
        *observed.touched_queues(before.queues, now.queues, sorted(ports), rows_only=rows_only),
        *(f"{port} {queue}" for port, queue in observed.begun_again(before.counts, now.counts)),
    ]
    name = change.name if change is not None else "no reload"
    window.touched_rules += [f"{name}: {rule}" for rule in rules]
    window.touched_queues += [f"{name}: {row}" for row in queues]
    if is_wrong:
        loaded = ["the time of loading"] if now.loaded_at != before.loaded_at else []
        window.touched_wrongly += [f"{name}: {each}" for each in (*rules, *queues, *loaded)]
    window.rules, window.queues = len(before.rules), sum(map(len, before.queues.values()))
    window.dropped += sum(max(0, count.dropped - before.counts[key].dropped) for key, count in now.counts.items())
    return now


@contextmanager
def _load(yard: Yard, window: Window) -> Iterator[None]:
    """Have full links and open connections, and note at the end what became of them."""
    with yard.full() as streams:
        time.sleep(WARM_UP_SECONDS)
        with open_connections(yard.controller.port) as tallies:
            yield
    for tally in tallies:
        window.requests += len(tally.answers) + tally.broken
        window.refused += tally.lost - tally.broken
        window.broke += tally.broken
    window.numbered = dict(streams.numbered)
    window.tcp_bps = streams.tcp_bps


def _port(dpid: int, number: int) -> str:
    return f"s{dpid}-eth{number}"
