"""Keeps the interface's bands as TensorLights wants them when jobs come and go, and rotates them."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from controller.model import Progress
from controller.wire import JobSpec
from controller.wire.parts import PartSpec
from host_reporter.nic.errors import NicError
from host_reporter.nic.guard import NicGuard
from host_reporter.nic.tensorlights.bands import MAX_PORTS, Server, fitting, server_of, turn_at
from host_reporter.notices import Notices
from host_reporter.repairs import Repairs
from host_reporter.worker import Worker

if TYPE_CHECKING:
    from host_reporter.nic.tensorlights.nic import TensorLightsNic

TIDY_SECONDS = 10.0
"""Try to remove leaves without a filter this often, because they may have become empty."""

GATHER_SECONDS = 0.05
"""Jobs that come within this time get their bands in one change."""

STOP_SECONDS = 6.0
_KEY, _INSTALLED = "nic", "lights"


class TensorLights:
    """Receives the followed jobs (``host_reporter.jobs.receivers``), and serves them in a thread. No method waits.

    Where ``rotate_seconds`` is None, bands are fixed. ``period`` returns the seconds between two looks for changes by
    other programs. ``failed`` is called if a fault ends the thread.
    """

    def __init__(
        self,
        nic: TensorLightsNic,
        host: str,
        rotate_seconds: float | None,
        notices: Notices,
        failed: Callable[[Exception], None],
        *,
        period: Callable[[], float],
    ) -> None:
        self._nic = nic
        self._guard = NicGuard(nic.interface)
        self._host = host
        self._rotate_seconds = rotate_seconds
        self._notices = notices
        self._period = period
        self._repairs = Repairs(f"the traffic control of {nic.interface}", notices)
        self._served: tuple[tuple[Server, ...], int | None] | None = None
        """The servers and the turn that the interface serves; None where it refused them."""
        self._tidy_at = 0.0
        self._worker = Worker("tensorlights", self._work, self._take_away, failed=failed)
        self._news = self._worker.news
        self._servers: dict[str, Server] = {}
        self._seen: dict[str, float] = {}
        self._changed = True
        self._is_paused = False
        self._held_until = 0.0

    def hold(self, seconds: float) -> None:
        """Leave the interface as it is until ``pause`` has been called, for ``seconds`` at most. Call it before
        ``start``."""
        self._held_until = time.monotonic() + seconds

    def start(self) -> None:
        """Start the thread. It first adopts or removes what an earlier agent has left."""
        self._worker.start()

    def stop(self) -> None:
        """Stop the thread and remove what it has installed, within STOP_SECONDS."""
        self._worker.stop(STOP_SECONDS)

    def pause(self, is_paused: bool) -> None:
        """Take the bands away, or serve the jobs again."""
        with self._news:
            self._changed |= self._is_paused != is_paused or self._held_until > 0.0
            self._is_paused, self._held_until = is_paused, 0.0
            self._news.notify()

    def declare(self, job: str, spec: JobSpec | PartSpec | None) -> None:
        """Note a job that has begun, or whose spec has changed."""
        known = server_of(job, spec, self._host, self._seen.setdefault(job, time.time()))
        with self._news:
            if known is None:
                self._changed |= self._servers.pop(job, None) is not None
            elif self._servers.get(job) != known:
                self._servers[job] = known
                self._changed = True
            self._news.notify()

    def add(self, job: str, points: list[Progress]) -> None:
        """Do nothing: TensorLights does not use progress."""

    def diverge(self, job: str) -> None:
        """Nor does what it says of the metric."""

    def note_unread(self, job: str, reason: str) -> None:
        """Nor does what cannot be read."""

    def end(self, job: str) -> None:
        """Note that a job has ended."""
        self._seen.pop(job, None)
        with self._news:
            self._changed |= self._servers.pop(job, None) is not None
            self._news.notify()

    def end_earlier(self, job: str, at: float) -> None:
        """Do nothing: a job that ended before the agent began was never served here."""

    def _work(self) -> None:
        while self._turn():
            pass

    def _turn(self) -> bool:
        """Serve the present jobs, then wait for a change. Returns whether the thread goes on."""
        with self._news:
            self._changed = False
            servers = self._fitting(() if self._is_paused else self._servers.values())
            held_until = self._held_until
        now = time.monotonic()
        turn = None if self._rotate_seconds is None else turn_at(now, self._rotate_seconds)
        until = now + self._period()
        if now < held_until:
            until = min(until, held_until)
        else:
            self._serve(servers, turn, is_tidy=now < self._tidy_at)
        if turn is not None and self._rotate_seconds is not None:
            until = min(until, (turn + 1) * self._rotate_seconds)
        with self._news:
            self._news.wait_for(lambda: self._changed or self._worker.is_stopping, max(0.0, until - time.monotonic()))
            if self._changed and not self._worker.is_stopping:
                self._news.wait_for(lambda: self._worker.is_stopping, GATHER_SECONDS)
            return not self._worker.is_stopping

    def _fitting(self, servers: Collection[Server]) -> tuple[Server, ...]:
        """Returns the servers whose ports the kernel can distinguish, and logs how many are left out."""
        taken = fitting(servers)
        if left := len(servers) - len(taken):
            self._notices.say(
                "ports",
                f"{left} jobs' parameter servers are other traffic at {self._nic.interface}: all jobs together have "
                f"more than {MAX_PORTS:,} ports here",
            )
        else:
            self._notices.clear("ports")
        return taken

    def _serve(self, servers: tuple[Server, ...], turn: int | None, *, is_tidy: bool) -> None:
        """Repair what others have changed, then give the servers their bands, unless they have them already."""
        try:
            if len(servers) > 1:
                # The guard starts before the first change, because the agent may be killed at any time after it.
                self._watch()
            self._repairs.look(self._nic)
            self._say_obstacles()
            if self._served == (servers, turn) and is_tidy:
                return
            is_there = self._nic.serve(servers, turn)
        except NicError as error:
            self._served = None
            self._notices.say(_KEY, f"this host's interface does not order its parameter servers: {error}")
            self._notices.clear(_INSTALLED)
            # A part of the order is worse than none.
            with contextlib.suppress(NicError):
                self._nic.remove()
            return
        self._served, self._tidy_at = (servers, turn), time.monotonic() + TIDY_SECONDS
        self._notices.clear(_KEY)
        if is_there:
            self._notices.say(_INSTALLED, f"{self._nic.interface} orders this host's parameter servers", logging.INFO)
        else:
            self._notices.clear(
                _INSTALLED, f"{self._nic.interface} is as it was: fewer than two jobs have a server here"
            )
            self._guard.dismiss()

    def _say_obstacles(self) -> None:
        if self._nic.obstacles:
            self._notices.say("in front", "; ".join(self._nic.obstacles))
        else:
            self._notices.clear("in front", "no filter of somebody else is before the agent's any more")

    def _watch(self) -> None:
        try:
            self._guard.watch()
        except NicError as error:
            self._notices.say("guard", f"{self._nic.interface}: {error}")

    def _take_away(self) -> None:
        try:
            self._nic.remove()
        except NicError as error:
            self._notices.say(_KEY, f"the parameter servers' bands cannot be taken away: {error}")
        self._guard.dismiss()
