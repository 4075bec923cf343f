"""The messages on plans: a host's marks, the plan in force and its reasons, and the settings that change it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.base import Message, Name, TcpPort


class Mark(Message):
    """Traffic of a host's job to be marked: outgoing TCP packets that match get the DSCP of the job's class.

    ``remote`` is an IPv4 address; a part of None matches anything. A mark without any part matches all that the job's
    own processes send, because the agent knows their sockets. Only an agent that has reported the job's traffic gets
    such a mark.
    """

    job: Name
    service_class: Annotated[int, Field(ge=0, le=6)]
    dscp: Annotated[int, Field(ge=0, le=63)]
    local_port: TcpPort | None = None
    remote: str | None = None
    remote_port: TcpPort | None = None

    @property
    def is_whole(self) -> bool:
        """Whether the mark matches all that the job sends."""
        return self.local_port is None and self.remote is None and self.remote_port is None


class Peers(Message):
    """Body of ``GET /v1/hosts/{host}/peers``: the hosts of the settings by their IPv4 addresses."""

    addresses: dict[str, Name]


class HostPlan(Message):
    """Body of ``GET /v1/hosts/{host}/plan``: the host's marking plan.

    ``class_dscp[k]`` is the DSCP of class k; all other traffic has DSCP 0. ``class_floor`` and ``other_floor`` are
    the shares of the link that each job class and all other traffic keep. ``egress_bps`` is the host's link.
    """

    host: Name
    epoch: int
    policy: str
    mode: Literal["classified", "marked"]
    class_dscp: Annotated[tuple[int, ...], Field(strict=False)]
    class_floor: float
    other_floor: float
    egress_bps: float
    marks: Annotated[tuple[Mark, ...], Field(strict=False)] = ()


class PlanView(Message):
    """Body of ``GET /v1/plan``: the plan in force, or what another policy would do (``?policy=NAME``).

    ``errors``: why switches refused a newer plan, which is therefore not in force. All switches hold the plan in force,
    but ``applied`` is false as long as a newer plan, which some switches may hold, is refused. ``inversions`` counts
    the pairs of jobs that meet at a port and share a class, because there are too few classes. ``mode``: how switches
    distinguish jobs now; where the settings say classified and this is marked, ``degraded`` says why.
    """

    policy: str
    options: dict[str, object]
    applied: bool
    epoch: int
    age_seconds: float
    order: Annotated[tuple[tuple[str, ...], ...], Field(strict=False)]
    classes: dict[str, int]
    reasons: dict[str, str]
    objective_seconds: float
    lower_bound_seconds: float | None
    inversions: int = 0
    errors: Annotated[tuple[str, ...], Field(strict=False)] = ()
    mode: Literal["classified", "marked"] = "classified"
    degraded: str | None = None


class Explanation(Message):
    """Body of ``GET /v1/jobs/{id}/explain``: why the job has its class, with the numbers."""

    job: Name
    policy: str
    service_class: int
    position: int
    jobs_before: Annotated[tuple[str, ...], Field(strict=False)]
    reason: str
    bottleneck_port: str | None
    bottleneck_seconds_per_iteration: float
    iterations_done: float
    iterations_left: float
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()


class Settings(Message):
    """Body of ``GET`` and ``PATCH /v1/settings``: settings that can change at run time; absent ones stay."""

    policy: str | None = None
    policy_options: dict[str, object] | None = None
    period_seconds: Annotated[float, Field(ge=0.1, le=3600)] | None = None
