"""The messages on plans: a host's marks, the plan in force and its reasons, and the settings that change it."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.base import Message, Name, TcpPort
from controller.wire.parts import FoundBy


class Mark(Message):
    """Traffic of a host's job to be marked: outgoing TCP packets that match get the DSCP of the job's class.

    A mark without any of the three last parts matches all that the job's own processes send, because the agent knows
    their sockets. Only an agent that has reported the job's traffic gets such a mark.
    """

    job: Name
    """The name of the job."""
    service_class: Annotated[int, Field(ge=0, le=6)]
    """The class of the job. Class 0 is served first."""
    dscp: Annotated[int, Field(ge=0, le=63)]
    """The DSCP to set."""
    local_port: TcpPort | None = None
    """The TCP port at this host. null: any."""
    remote: str | None = None
    """The IPv4 address of the other end. null: any."""
    remote_port: TcpPort | None = None
    """The TCP port at the other end. null: any."""

    @property
    def is_whole(self) -> bool:
        """Whether the mark matches all that the job sends."""
        return self.local_port is None and self.remote is None and self.remote_port is None


class Peers(Message):
    """Body of ``GET /v1/hosts/{host}/peers``: the hosts of the settings by their IPv4 addresses."""

    addresses: dict[str, Name]
    """The names of the hosts of the settings, by IPv4 address."""


class HostPlan(Message):
    """Body of ``GET /v1/hosts/{host}/plan``: the host's marking plan."""

    host: Name
    """The name of the host."""
    epoch: int
    """The number of this host's plan. It rises when the host's marks change."""
    policy: str
    """The policy that ordered the jobs."""
    mode: Literal["classified", "marked"]
    """How switches distinguish jobs now: by addresses and ports, or by marks alone."""
    class_dscp: Annotated[tuple[int, ...], Field(strict=False)]
    """The DSCP of each class, class 0 first. All other traffic has DSCP 0."""
    class_floor: float
    """The share of the link that each class of jobs keeps."""
    other_floor: float
    """The share of the link that all other traffic keeps."""
    egress_bps: float
    """The rate of the host's link from the host, in bit/s."""
    paused: bool = False
    """Whether the agent takes its marks and its tree away: an operator has paused, or the controller only observes.
    Absent: it does not, so that agents of earlier versions understand the plan."""
    marks: Annotated[tuple[Mark, ...], Field(strict=False)] = ()
    """The traffic to mark."""


class PlanView(Message):
    """Body of ``GET /v1/plan``: the plan in force, or what another policy would do (``?policy=NAME``)."""

    policy: str
    """The policy that ordered the jobs."""
    options: dict[str, object]
    """The options of the policy that are in force."""
    applied: bool
    """Whether all switches hold this plan and no newer one. It is false while a newer plan, which some switches may
    hold, is refused, for the plan of another policy, and where enforce does not name switch."""
    epoch: int
    """The number of the plan in force. It rises when the class of a job or the policy changes."""
    age_seconds: float
    """The seconds since the plan was made."""
    order: Annotated[tuple[tuple[str, ...], ...], Field(strict=False)]
    """The bands of jobs, first served first. Jobs of one band share the network."""
    classes: dict[str, int]
    """The class of each job. Class 0 is served first."""
    reasons: dict[str, str]
    """The reason for the place of each job."""
    objective_seconds: float
    """The weighted mean over jobs of the time until the ports of the job have served it in this order."""
    lower_bound_seconds: float | None
    """A lower bound of that mean over all orders. null: it is not known."""
    inversions: int = 0
    """How many pairs of jobs meet at a port and share a class, because there are too few classes."""
    errors: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Why switches refused a newer plan, which is therefore not in force."""
    mode: Literal["classified", "marked"] = "classified"
    """How switches distinguish jobs now: by addresses and ports, or by marks alone."""
    degraded: str | None = None
    """Why switches use the marks alone although the settings say classified. null: they do not."""


class JobAtPort(Message):
    """Another job at a port that a job uses."""

    job: str
    """The name of the job. For a tenant that may not see it: another job."""
    service_class: int
    """Its class. Class 0 is served first."""
    seconds_left: float
    """How long the port needs, at its rate, for all iterations that the job has left."""


class PortWait(Message):
    """What a job waits for at a port that it uses."""

    port: str
    """The host and the direction, such as node1 egress; or a link between switches, and its direction."""
    own_seconds_per_iteration: float
    """How long the port needs, at its rate, for one iteration of the job."""
    own_seconds_left: float
    """How long it needs for all iterations that the job has left."""
    seconds_before: float
    """How long it needs for all jobs that are served before the job: those of smaller class numbers."""
    before: Annotated[tuple[JobAtPort, ...], Field(strict=False)]
    """The jobs that are served before the job, most seconds first, at most 16."""
    before_count: int
    """How many there are."""
    alike: Annotated[tuple[JobAtPort, ...], Field(strict=False)]
    """The jobs of the same class, which share the port with the job, most seconds first, at most 16."""
    alike_count: int
    """How many there are."""
    after_count: int
    """How many jobs are served after the job: those of larger class numbers."""


class Explanation(Message):
    """Body of ``GET /v1/jobs/{id}/explain``: why the job has its class, with the numbers."""

    job: Name
    """The name of the job."""
    policy: str
    """The policy that ordered the jobs."""
    service_class: int
    """The class of the job. Class 0 is served first."""
    position: int
    """The number of its band in the order, from 0."""
    jobs_before: Annotated[tuple[str, ...], Field(strict=False)]
    """The jobs of all bands before its own."""
    reason: str
    """The policy's reason for its place."""
    bottleneck_port: str | None
    """The port that is busy longest in one iteration of the job. null: the job has no demand."""
    bottleneck_seconds_per_iteration: float
    """How long that port is busy in one iteration, in seconds."""
    iterations_done: float
    """How many iterations the job has done."""
    iterations_left: float
    """How many iterations are left."""
    target: float | None = None
    """The value of the metric that the user calls done. null: none is declared."""
    diverged: bool = False
    """Whether the job has diverged."""
    family: str | None = None
    """The family of the job. null: it has none."""
    earlier_runs: str | None = None
    """What earlier runs of its family said when the plan was made, in a sentence; also why they are ignored."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Where the measured demand differs much from the declared one."""
    ports: Annotated[tuple[PortWait, ...], Field(strict=False)] = ()
    """What the job waits for at the ports that its demand loads: the ports with the longest wait first, at most 16."""
    found: FoundBy | None = None
    """How agents have found the job. null: it was registered whole."""


class Settings(Message):
    """Body of ``GET`` and ``PATCH /v1/settings``: settings that can change at run time; absent ones stay."""

    policy: str | None = None
    """The name of the policy. It is tried on the present jobs first."""
    policy_options: dict[str, object] | None = None
    """The options of the policy, by name."""
    period_seconds: Annotated[float, Field(ge=0.1, le=3600)] | None = None
    """The longest time between two plans, in seconds."""
    pause: bool | None = None
    """Whether nothing is enforced: the gates of all switches are closed, and agents take marks and trees away. Jobs and
    plans go on. It lasts over restarts, until somebody sets it to false."""
