"""The messages on plans: a host's marks, the plan in force and its reasons, and the settings that change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field

from controller.code_points import POOL_2, CodePoints
from controller.wire.addresses import InterfaceName
from controller.wire.base import Message, Name, TcpPort, Unit
from controller.wire.parts import FoundBy

Dscp = Annotated[int, Field(ge=0, le=63)]


class Mark(Message):
    """Traffic of a host's job to be marked: outgoing TCP packets that match get the DSCP of the job's class,
    or in mode dscp that of the job.

    A mark without any of the three last parts matches all that the job's own processes send, because the agent knows
    their sockets. Only an agent that has reported the job's traffic gets such a mark.
    """

    job: Name
    """The name of the job."""
    service_class: Annotated[int, Field(ge=0, le=6)]
    """The class of the job. Class 0 is served first."""
    dscp: Dscp
    """The DSCP to set."""
    local_port: TcpPort | None = None
    """The TCP port at this host. null: any."""
    remote: str | None = None
    """The IPv4 or IPv6 address of the other end. null: any."""
    remote_port: TcpPort | None = None
    """The TCP port at the other end. null: any."""

    @property
    def is_whole(self) -> bool:
        """Whether the mark matches all that the job sends."""
        return self.local_port is None and self.remote is None and self.remote_port is None


class ProtocolMark(Mark):
    """Traffic that is not TCP and is to be marked. Ports are those of UDP; ``any`` has no ports."""

    protocol: Literal["udp", "any"]
    """udp: UDP packets. any: all packets of IP to remote."""


_LATER_FIELDS = (
    "paused", "acknowledgement_dscp", "other_dscp", "exclusive_dscp", "interfaces", "jobs", "protocol_marks",
)  # fmt: skip


EVERY_ADDRESS = "every-address"
"""A preference (RFC 7240) of an agent that understands IPv6 addresses and interfaces among its peers."""
EVERY_PROTOCOL = "every-protocol"
"""A preference of an agent that understands marks of traffic that is not TCP."""
JOB_DSCP = "job-dscp"
"""A preference of an agent that understands plans where each job has a DSCP of its own."""


class Peers(Message):
    """Body of ``GET /v1/hosts/{host}/peers``: the hosts of the settings by their addresses.

    IPv6 addresses and interfaces are there only for an agent that asks with the header ``Prefer: every-address``.
    """

    addresses: dict[str, Name]
    """The names of the hosts of the settings, by IPv4 or IPv6 address."""
    interfaces: dict[str, InterfaceName] = Field(default_factory=dict)
    """The names of the interfaces that have these addresses, for hosts that have several interfaces in the network that
    is ordered. Absent: no host has."""

    def as_absent(self) -> set[str]:
        """Returns the fields that say what their absence says, and that agents of an earlier version do not know."""
        return set() if self.interfaces else {"interfaces"}


class InterfacePlan(Message):
    """An interface of a host that has several in the network that is ordered."""

    name: InterfaceName
    """The name of the interface on the host."""
    egress_bps: float
    """The rate of its link from the host, in bit/s."""


class HostJob(Message):
    """A job that takes part on a host, and has a DSCP of its own."""

    job: Name
    """The name of the job."""
    dscp: Dscp
    """The DSCP that the job has from its registration to its end."""
    service_class: Annotated[int, Field(ge=0, le=6)]
    """The class that packets with this DSCP are served with now. Class 0 is served first."""


class HostPlan(Message):
    """Body of ``GET /v1/hosts/{host}/plan``: the host's marking plan."""

    host: Name
    """The name of the host."""
    epoch: int
    """The number of this host's plan. It rises when the host's marks change."""
    policy: str
    """The policy that ordered the jobs."""
    mode: Literal["classified", "marked", "dscp"]
    """How switches distinguish jobs now: by addresses and ports, by marks of classes alone, or by marks of jobs. Agents
    of earlier versions refuse the last."""
    class_dscp: Annotated[tuple[Dscp, ...], Field(strict=False, min_length=1)]
    """The DSCP of each class, class 0 first. In mode dscp only their number counts."""
    acknowledgement_dscp: Dscp | None = POOL_2.acknowledgements
    """The DSCP of jobs' packets without data. null: they get that of class 0; in mode dscp they keep that of their job.
    Absent: it is 63."""
    other_dscp: Dscp = POOL_2.other
    """The DSCP that a packet gets whose DSCP is cleared. Absent: it is 0."""
    exclusive_dscp: Annotated[tuple[Dscp, ...], Field(strict=False)] = tuple(sorted(POOL_2.exclusive))
    """The DSCPs that no program may set: they are cleared in all that the host's programs send. Any other of the plan's
    DSCPs is cleared only in what the cgroup of a job sends. Absent: they are 11, 19, 27, 35, 43, 51, 59 and 63."""
    class_floor: float
    """The share of the link that each class of jobs keeps."""
    other_floor: float
    """The share of the link that all other traffic keeps."""
    egress_bps: float
    """The rate of the host's link from the host, in bit/s. Of a host with several it is the rate of all together."""
    interfaces: Annotated[tuple[InterfacePlan, ...], Field(strict=False)] = ()
    """The interfaces of a host that has several in the network that is ordered. Each gets a tree of its own, and all
    get the same marks. Absent: it has one, whose rate is egress_bps."""
    paused: bool = False
    """Whether the agent takes its marks and its tree away: an operator has paused, or the controller only observes.
    Absent: it does not, so that agents of earlier versions understand the plan."""
    jobs: Annotated[tuple[HostJob, ...], Field(strict=False)] = ()
    """The jobs that take part on this host, each with the DSCP that it has for its life. They are here also while the
    plan is paused. Absent: jobs have no DSCPs of their own, or there are none."""
    marks: Annotated[tuple[Mark, ...], Field(strict=False)] = ()
    """The TCP traffic to mark."""
    protocol_marks: Annotated[tuple[ProtocolMark, ...], Field(strict=False)] = ()
    """The other traffic to mark, behind that of marks: jobs declare it with a protocol. What a network interface sends
    by itself, such as RDMA, passes no packet filter and stays as it is. Absent: there is none."""

    @property
    def all_marks(self) -> tuple[Mark, ...]:
        """All traffic to mark; the first match decides."""
        return (*self.marks, *self.protocol_marks)

    @property
    def code_points(self) -> CodePoints:
        """The DSCPs of this plan. They change with the host's jobs, and not with the classes of these."""
        own = tuple(sorted({job.dscp for job in self.jobs})) if self.mode == "dscp" else None
        return CodePoints(
            self.class_dscp, self.acknowledgement_dscp, self.other_dscp, frozenset(self.exclusive_dscp), own
        )

    @property
    def served_points(self) -> CodePoints:
        """The DSCPs of this plan with the classes that they are served with now, the best one where jobs share one."""
        if self.mode != "dscp":
            return self.code_points
        # Of several for one DSCP the last one stays, which is the best.
        worst_first = sorted(self.jobs, key=lambda job: -job.service_class)
        order = {job.dscp: job.service_class for job in worst_first}
        return replace(self.code_points, order=tuple(sorted(order.items())))

    def over_ipv4(self) -> HostPlan:
        """Returns the plan for an agent of an earlier version, which would refuse all marks for one IPv6 address."""
        marks = tuple(mark for mark in self.marks if _is_over_ipv4(mark))
        more = tuple(mark for mark in self.protocol_marks if _is_over_ipv4(mark))
        if (len(marks), len(more)) == (len(self.marks), len(self.protocol_marks)):
            return self
        return self.model_copy(update={"marks": marks, "protocol_marks": more})

    def of_tcp(self) -> HostPlan:
        """Returns the plan for an agent of an earlier version, which would refuse all of it for a mark of UDP."""
        return self.model_copy(update={"protocol_marks": ()}) if self.protocol_marks else self

    def as_absent(self) -> set[str]:
        """Returns the fields that say what their absence says, and that agents of an earlier version do not know.

        Such an agent refuses a plan with a field that it does not know. So it follows plans without them, and none that
        it would only half understand.
        """
        fields = type(self).model_fields
        return {name for name in _LATER_FIELDS if getattr(self, name) == fields[name].default}


def _is_over_ipv4(mark: Mark) -> bool:
    return mark.remote is None or ":" not in mark.remote


class JobWait(Message):
    """Where a job waits for longest, and for whom."""

    port: str
    """The port: the first of those that explain tells of."""
    seconds_before: float
    """How long the port needs at most for the jobs that are served before the job, as in explain."""
    seconds_beside: float
    """How long the port needs at most for the other jobs of the same class, as in explain. The job waits for
    seconds_before and seconds_beside at most."""
    seconds_until_served: float
    """The longest time until one of its ports has served all that is left of the job, and of the jobs before and beside
    it there. Where the plan has no inversions, its objective is the weighted mean of these times."""
    before_count: int
    """How many jobs are served before the job at this port."""
    first: str | None
    """The one that is served first there. null: nobody is before it."""
    alike_count: int
    """How many jobs of the same class share the port with the job."""


class PlanState(Message):
    """A plan: the order of the jobs, their classes and the reasons."""

    policy: str
    """The policy that ordered the jobs."""
    options: dict[str, object]
    """The options of the policy that are in force."""
    applied: bool
    """Whether all that are to enforce this plan have it and no newer one. It is false while a newer plan, which some
    switches may hold, is refused, for the plan of another policy, and where enforce is empty."""
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
    mode: Literal["classified", "marked", "dscp"] = "classified"
    """How switches distinguish jobs now: by addresses and ports, by marks of classes alone, or by a DSCP of each
    job."""
    degraded: str | None = None
    """Why switches use the marks alone although the settings say classified. null: they do not."""
    waits: dict[str, JobWait] = Field(default_factory=dict)
    """Where each job waits for longest. A job without demand waits nowhere, and is left out."""


class PlanView(PlanState):
    """Body of ``GET /v1/plan``: the plan in force, or what another policy would do (``?policy=NAME``)."""

    in_force: PlanState | None = None
    """For the plan of another policy: the plan in force, which is made of what was known at the same moment."""


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
    """How long it needs for all that is left of the jobs that are served before the job, those of smaller class
    numbers."""
    seconds_beside: float
    """How long it needs for all that is left of the other jobs of its class, which share the port with it. The job
    waits for seconds_before and seconds_beside at most: less where the others pause."""
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


class JobPace(Message):
    """How fast a job trains, in iterations a second; in epochs where its progress counts them."""

    now: float
    """Its pace by its latest reports."""
    seconds: float
    """Over how many seconds that is measured."""
    alone: float | None = None
    """Its pace on an idle network, by the seconds of computing that it declares. null: it declares none."""
    best: float | None = None
    """The highest pace that was measured over 30 s earlier in its run. null: it has not run for so long."""


class PredictionCheck(Message):
    """How far off the prediction of an iteration was that the job has declared."""

    seconds: float
    """The predicted seconds of an iteration."""
    low: float
    """The seconds that it takes at least, with a chance of 90 %."""
    high: float
    """The seconds that it takes at most, with a chance of 90 %."""
    measured: float | None = None
    """The seconds of an iteration at its highest pace so far, over 30 s or as long as it has run. null: it is not known
    yet."""
    off: float | None = None
    """By which share an iteration takes longer than predicted; below 0, shorter. null: it is not known yet."""


class LaterJob(Message):
    """Another job that would wait longer."""

    job: str
    """The name of the job."""
    seconds: float
    """How long it would wait at most for those before it and those that share with it, at the port where it waits for
    longest."""
    seconds_now: float
    """The same in the plan in force."""


class Outcome(Message):
    """The place of a job in a plan, with a weight, a target and a policy."""

    weight: float
    """The weight of the job in this plan."""
    target: float | None
    """The target of the job in this plan. null: none is declared."""
    policy: str
    """The policy that ordered the jobs."""
    service_class: int
    """The class of the job."""
    reason: str
    """The policy's reason for its place."""
    wait: JobWait | None
    """Where it waits for longest. null: it has no demand."""
    later: Annotated[tuple[LaterJob, ...], Field(strict=False)] = ()
    """The jobs that would wait longer than in the plan in force, most seconds more first, at most 16."""
    later_count: int = 0
    """How many there are."""


class Explanation(Message):
    """Body of ``GET /v1/jobs/{id}/explain``: why the job has its class, with the numbers."""

    job: Name
    """The name of the job."""
    policy: str
    """The policy that ordered the jobs."""
    service_class: int
    """The class of the job. Class 0 is served first."""
    dscp: int | None = None
    """The DSCP that the job has for its life. null: jobs have those of their classes."""
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
    unit: Unit = "iteration"
    """What its progress counts. Where these are epochs, all iterations here stand for epochs."""
    target: float | None = None
    """The value of the metric that the user calls done. null: none is declared."""
    diverged: bool = False
    """Whether the job has diverged."""
    family: str | None = None
    """The family of the job. null: it has none."""
    earlier_runs: str | None = None
    """What earlier runs of its family said when the plan was made, in a sentence; also why they are ignored."""
    problems: Annotated[tuple[str, ...], Field(strict=False)] = ()
    """Where the measured demand differs much from the declared one, where other jobs declare the same traffic, and
    where bytes of the job leave by ways that are not seen."""
    ports: Annotated[tuple[PortWait, ...], Field(strict=False)] = ()
    """What the job waits for at the ports that its demand loads: the ports with the longest wait first, at most 16."""
    before_count: int = 0
    """How many jobs are served before it at one of its ports or more."""
    alike_count: int = 0
    """How many jobs of its class share one of its ports or more with it."""
    found: FoundBy | None = None
    """How agents have found the job. null: it was registered whole."""
    epoch: int | None = None
    """The number of the plan in force. null: it is not known."""
    planned_at: float | None = None
    """When the plan in force was made, in seconds since the Unix epoch; outcomes are of what was known then."""
    pace: JobPace | None = None
    """How fast it trains. null: it has not reported two different iterations."""
    prediction: PredictionCheck | None = None
    """The predicted time of an iteration beside the measured one. null: the job has declared no prediction."""
    reached_at: dict[str, float] = Field(default_factory=dict)
    """When it has reported the iterations of the targets that it has reached, in seconds since the Unix epoch."""
    outcomes: Annotated[tuple[Outcome, ...], Field(strict=False)] = ()
    """With weight, weights, target or policy: its place as it is in force, and then with each change, all of what was
    known at one moment."""
    not_enforced: str | None = None
    """Why nothing of this order is enforced now, such as by a pause or because the controller only observes. null: it
    is, or something is only tried."""


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
