"""Fetches the host's plan as soon as it changes, and has it carried out; counts what each job sends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from pydantic import ValidationError

from controller.documents.faults import described, in_lines
from controller.wire import EVERY_ADDRESS, EVERY_PROTOCOL, JOB_DSCP, HostPlan
from host_reporter.marking.enforcement import Enforcement, Marking
from host_reporter.marking.rules_text import Sent
from host_reporter.notices import Notices
from host_reporter.uplink.backoff import Backoff
from host_reporter.uplink.connection import Address, Answer, Connection, UnreachableError
from host_reporter.worker import Worker

COUNT_SECONDS = 30.0
"""Read the counters this often; a reading lists the whole table, which costs more than all else here."""

AGAIN_SECONDS = 60.0
"""Carry a plan out again after this time, since what failed may work now; ``reconciler`` sees what others change."""

STALE_SECONDS = 60.0
"""Remove the marks after this time without a controller, longer than a restart: an old order must not starve a job."""

STOP_SECONDS = 6.0
_GRACE_SECONDS = 10.0
_OK, _NOT_MODIFIED = 200, 304
_UNDERSTOOD = f"{EVERY_ADDRESS}, {EVERY_PROTOCOL}, {JOB_DSCP}"
"""What this agent understands of plans, as preferences (RFC 7240)."""
_KEY = "plan"

log = logging.getLogger(__name__)


class PlanFollower:
    """A thread that waits for plans. ``count`` takes bytes sent by job, ``marked`` what the host marks now; ``failed``
    a fault that ended the thread; ``paused`` whether a new plan is paused; ``followed`` the plan in force, at once and
    again after each call.
    """

    def __init__(
        self,
        address: Address,
        host: str,
        enforcement: Enforcement,
        notices: Notices,
        *,
        count: Callable[[Mapping[str, Sent]], None],
        marked: Callable[[Marking], None],
        failed: Callable[[Exception], None],
        paused: Callable[[bool], None],
        followed: Callable[[HostPlan], None],
        count_seconds: float = COUNT_SECONDS,
        again_seconds: float = AGAIN_SECONDS,
        stale_seconds: float = STALE_SECONDS,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        self._count_seconds = count_seconds
        self._again_seconds = again_seconds
        self._stale_seconds = stale_seconds
        self._stop_seconds = stop_seconds
        self._path = f"/v1/hosts/{host}/plan"
        self._connection = Connection(address)
        self._enforcement = enforcement
        self._notices = notices
        self._count = count
        self._marked = marked
        self._paused = paused
        self._followed = followed
        self._backoff = Backoff()
        self._tag: str | None = None
        self._plan: HostPlan | None = None
        self._answered_at = time.monotonic()
        self._apply_again_at: float | None = None
        self._count_at = 0.0
        self._worker = Worker(
            "plan", self._work, self._count_bytes, enforcement.remove, self._connection.close, failed=failed
        )

    def start(self) -> None:
        """Begin."""
        self._worker.start()

    def stop(self) -> None:
        """End: count a last time, and take away what was made, within ``stop_seconds``."""
        self._worker.request_stop()
        self._connection.abort()
        self._worker.stop(self._stop_seconds)

    def _work(self) -> None:
        while not self._worker.is_stopping:
            self._turn()
            if self._plan is not None:
                self._followed(self._plan)

    def _turn(self) -> None:
        wait = self._count_seconds if self._enforcement.is_marking else self._again_seconds / 2
        try:
            answer = self._connection.request(
                "GET",
                f"{self._path}?wait={wait:g}",
                known_tag=self._tag,
                prefer=_UNDERSTOOD,
                seconds=wait + _GRACE_SECONDS,
            )
        except UnreachableError as error:
            if not self._worker.is_stopping:
                self._trouble(str(error))
            return
        if answer.status == _OK:
            self._accept(answer)
        elif answer.status == _NOT_MODIFIED:
            self._answered()
        else:
            self._trouble(answer.detail)
            return
        due = self._apply_again_at is not None and time.monotonic() >= self._apply_again_at
        if self._plan is not None and due:
            self._enforcement.apply(self._plan)
            self._apply_again_at = time.monotonic() + self._again_seconds
        self._marked(self._enforcement.marking)
        if time.monotonic() >= self._count_at:
            self._count_bytes()

    def _count_bytes(self) -> None:
        if self._enforcement.is_marking:
            self._count(self._enforcement.sent_bytes())
            self._count_at = time.monotonic() + self._count_seconds

    def _accept(self, answer: Answer) -> None:
        try:
            plan = HostPlan.model_validate_json(answer.body)
        except ValidationError as error:
            reasons = "; ".join(in_lines(described(error, None, HostPlan))[:3])
            self._trouble(f"the controller's plan is not understood: {reasons}")
            return
        self._answered()
        self._tag, self._plan = answer.tag, plan
        # Before the marks, which take longer: a job's start may wait for this.
        self._followed(plan)
        self._paused(plan.paused)
        if plan.paused:
            # With the marks their counters go.
            self._count_bytes()
        # Plans come often, and asking the kernel what it can do costs processes: that can wait for its turn.
        self._enforcement.apply(plan, look=False)
        if self._apply_again_at is None:
            self._apply_again_at = time.monotonic() + self._again_seconds
        if answer.tag is None:
            # Without a tag there is no waiting on the other side.
            self._worker.wait(self._count_seconds)

    def _answered(self) -> None:
        self._answered_at = time.monotonic()
        self._backoff.reset()
        self._notices.clear(_KEY, "the host's plan is there again")

    def _trouble(self, reason: str) -> None:
        self._notices.say(_KEY, f"the host's plan cannot be had: {reason}; the last one stays in force for now")
        is_enforced = self._plan is not None and not self._plan.paused
        if is_enforced and time.monotonic() - self._answered_at > self._stale_seconds:
            log.warning("no plan for %g s: marks are taken away until there is one", self._stale_seconds)
            self._enforcement.open()
            self._tag, self._plan = None, None
        self._worker.wait(self._backoff.next_seconds())
