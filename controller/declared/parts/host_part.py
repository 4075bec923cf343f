"""The part that one host has in a job, and whether the job still runs there."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

from controller.declared.parts.part import Part
from controller.model import Role, Task

Over = Literal["ended", "removed"]
"""Why a job runs no more on a host: its agent has reported the end there, or the part was deleted."""


@dataclass(frozen=True, slots=True)
class HostPart:
    """A part as the controller keeps it.

    ``began`` is when the job was launched there, by the controller's clock. ``by_host``: the host's own token has put
    it. ``over`` and ``over_at``, by the controller's clock, are None while the job runs there. A part that is over is
    remembered, so that a late message does not bring it back.
    """

    host: str
    part: Part
    began: float
    by_host: bool = False
    over: Over | None = None
    over_at: float | None = None
    task: Task = field(init=False, compare=False)
    """The task that the part stands for in the job."""
    task_text: str = field(init=False, compare=False)
    """The same as JSON, in the form of ``wire.TaskSpec``."""

    def __post_init__(self) -> None:
        task = Task(Role.PEER, self.host)
        object.__setattr__(self, "task", task)
        text = json.dumps(task._asdict(), separators=(",", ":"))
        object.__setattr__(self, "task_text", text)

    @property
    def is_running(self) -> bool:
        """Whether the job runs on the host, as far as anybody has said."""
        return self.over is None

    def state(self, *, is_over: bool) -> dict[str, Any]:
        """Returns the fields of ``wire.PartState``. ``is_over``: the whole job has ended."""
        return {
            "launcher": self.part.launcher,
            "state": "running" if self.is_running and not is_over else "ended",
            "is_first": self.part.is_first,
            "world_size": self.part.world_size,
            "ranks": self.part.ranks,
            "arrival": self.part.arrival,
        }
