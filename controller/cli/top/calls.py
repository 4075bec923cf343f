"""The calls that a picture is made of."""

from __future__ import annotations

from typing import TypeVar

from controller.cli.client import Client, ForbiddenError, UnreachableError
from controller.cli.top.picture import Reading
from controller.wire import HistoryView, JobList, Message, Network, PlanView, Settings, Status

LATEST = "1000000000000"
"""As the beginning of a history this asks for the present step alone."""
STEPS = 7
"""Ask for so many steps before the present one, which may have no sample yet: a pace is measured over 30 s."""
Answer = TypeVar("Answer", bound=Message)


class Caller:
    """Reads a controller. It remembers the controller's time, so that the clock here does not matter."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._since = LATEST

    def read(self, *, with_jobs: bool) -> Reading:
        """Returns what the controller answers; what the caller's role may not see is None.

        Raises UnreachableError where the controller does not answer now, and CommandError where it never will.
        """
        jobs = self._client.get("/v1/jobs", JobList) if with_jobs else None
        return Reading(
            status=self._allowed("/v1/status", Status),
            settings=self._allowed("/v1/settings", Settings),
            plan=self._plan(),
            network=self._allowed("/v1/network", Network),
            history=self._history(),
            jobs=jobs,
        )

    def _plan(self) -> PlanView | None:
        try:
            return self._allowed("/v1/plan", PlanView)
        except UnreachableError:
            if self._allowed("/v1/status", Status) is None:
                raise
            return None  # the controller answers, but has no plan yet

    def _history(self) -> HistoryView:
        if self._since == LATEST:
            self._ask_history()
        return self._ask_history()

    def _ask_history(self) -> HistoryView:
        # Without the ports, whose load the network has. The name of no port is asked for by a comma.
        answer = self._client.get("/v1/history", HistoryView, {"since": self._since, "step": "5", "ports": ","})
        self._since = f"{answer.since + (answer.steps - 1 - STEPS) * answer.step_seconds:.0f}"
        return answer

    def _allowed(self, path: str, model: type[Answer]) -> Answer | None:
        try:
            return self._client.get(path, model)
        except ForbiddenError:
            return None
