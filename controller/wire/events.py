"""The messages on what changes (events), on the last hour (history), and on the network as a graph."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from controller.wire.audit import AuditRecord
from controller.wire.base import Message, Name
from controller.wire.jobs import MeasuredDemand, PredictedTarget
from controller.wire.metric import MetricSpec
from controller.wire.plans import Settings
from controller.wire.state import PortState

Numbers = Annotated[tuple[float | None, ...], Field(strict=False)]
_Texts = Annotated[tuple[str, ...], Field(strict=False)]


class PlanEvent(Message):
    """Data of the event ``plan``: a plan is in force, and its order, classes or policy differ from those before."""

    epoch: int | None
    """The number of the plan. It rises when the class of a job or the policy changes. null: for a tenant."""
    policy: str
    """The policy that ordered the jobs."""
    order: Annotated[tuple[_Texts, ...], Field(strict=False)]
    """The bands of jobs, first served first. For a tenant, of its own jobs."""
    classes: dict[str, int]
    """The class of each job. Class 0 is served first. For a tenant, of its own jobs."""
    moves: int | None
    """How many jobs have another class than in the plan before. null: for a tenant."""
    objective_seconds: float | None = None
    """The weighted mean over jobs of the time until their ports have served them in this order. null: it is not known,
    or for a tenant."""
    lower_bound_seconds: float | None
    """A lower bound of that mean over all orders. null: it is not known, or for a tenant."""


class JobProgress(Message):
    """How far a job has got."""

    iterations_done: float
    """How many iterations the job has done."""
    iterations_total: float | None
    """The length of the whole run. null: it is not declared."""
    last_metric: float | None
    """The latest value of its metric. null: it has reported none."""
    last_report: float | None
    """When it was reported last, in seconds since the Unix epoch. null: never."""
    diverged: bool
    """Whether this run has diverged."""
    ended_at: float | None = None
    """When it ended, in seconds since the Unix epoch. null: it has not ended."""


class JobDescription(Message):
    """What a job is: what it declares, and the bytes that it sends."""

    arrival: float
    """When it was submitted, in seconds since the Unix epoch."""
    user: str | None
    """The Unix user whose job it is."""
    stage: Name | None
    """The hyper-parameter stage that it is in."""
    family: str | None
    """The name under which its runs are kept. null: it has no family."""
    weight: float
    """How much it counts against others."""
    metric: MetricSpec
    """The metric that it reports."""
    target: float | None
    """The value of the metric that its user calls done."""
    compute_seconds: float
    """The seconds of one iteration without communication, as declared. 0: it is not declared."""
    hosts: _Texts | None
    """The hosts that it names. null: there are more than 256."""
    servers: _Texts | None
    """Those of them that run a parameter server. null: there are more than 256."""
    demand: Annotated[tuple[MeasuredDemand, ...], Field(strict=False)] | None
    """The bytes that one iteration sends between hosts, as declared; without it, as measured. null: it is not known, or
    it has more than 256 pairs of hosts."""
    launcher: Name | None = None
    """What has started it, of a job that agents have found. null: it was registered whole."""
    first_host: Name | None = None
    """The host that rank 0 of such a job runs on. null: it is not known."""


class JobEvent(Message):
    """Data of the event ``job``: a job was registered, reported, ended, lost, returned, moved or removed.

    There is at most one for a job and second. It has the newest state, and the last change is never left out.
    """

    id: Name
    """The name of the job."""
    state: Literal["waiting", "running", "ended", "lost", "removed"]
    """The state of the job as in JobState. removed: it is not there any more."""
    progress: JobProgress | None
    """How far it has got. null: it was removed."""
    service_class: int | None
    """Its class in the plan in force. Class 0 is served first. null: it is not in the plan."""
    targets: dict[str, PredictedTarget]
    """The targets that the policy predicts: t90 and t95 (90 % and 95 % of convergence), and target (the value that the
    job declares). Only some policies predict."""
    description: JobDescription | None = None
    """What the job is. It comes after a registration, with each change of the state, and once a minute. null: it was
    told before."""


class StageEvent(Message):
    """Data of the event ``stage``: a stage began, has other running jobs, or ended."""

    id: Name
    """The name of the stage."""
    state: Literal["running", "ended"]
    """ended: it was ended, or none of its jobs runs."""
    jobs: _Texts
    """The names of its running jobs, or of those that it had when it ended. For a tenant, of its own jobs."""


class HostLinkFacts(Message):
    """An interface of a host that has several, and where it is attached."""

    interface: str
    """The name of the interface on the host."""
    egress_bps: float
    """The rate of its link from the host, in bit/s."""
    ingress_bps: float
    """The rate of its link to the host, in bit/s."""
    switch: str | None = None
    """The datapath id of its switch, 16 hexadecimal digits. null: not known."""
    port: int | None = None
    """The OpenFlow port number at its switch. null: not known."""


class HostEvent(Message):
    """Data of the event ``host``: the agent of a host reports again or is silent, or a host was added or removed.

    A controller that starts tells of each host.
    """

    name: Name
    """The name of the host."""
    state: Literal["alive", "silent", "removed", "pending", "refused"]
    """alive: the lease of its agent runs. removed: it is there no more. pending: it asks to be added. refused: an
    operator has refused it."""
    marks_acknowledgements: bool
    """Whether its agent marks acknowledgements now."""
    egress_bps: float | None = None
    """The rate of its link from the host, in bit/s, or of all its links together. null: it takes no part."""
    ingress_bps: float | None = None
    """The rate of its link to the host, in bit/s, or of all its links together. null: it takes no part."""
    switch: str | None = None
    """The datapath id of the switch that it is attached to, 16 hexadecimal digits. null: not known, or it has several
    links."""
    port: int | None = None
    """Its OpenFlow port number there. null: not known, or it has several links."""
    links: Annotated[tuple[HostLinkFacts, ...], Field(strict=False)] = ()
    """The interfaces of a host that has several in the network that is ordered. Empty: it has one."""


class SwitchEvent(Message):
    """Data of the event ``switch``: a switch came, went, became ready or stopped being so, or has other problems."""

    dpid: str
    """The datapath id, 16 hexadecimal digits."""
    connected: bool
    """Whether the switch is connected now."""
    ready: bool
    """Whether the switch is used."""
    reason: str | None
    """Why the switch is not ready. null: it is."""
    problems: _Texts
    """What an operator should know although the switch is ready."""
    repairs: int
    """How often another program had changed the switch, and the change was undone."""


class SettingsEvent(Settings):
    """Data of the event ``settings``: the settings that can change at run time, or the settings file, have changed.

    A controller that starts tells of its settings.
    """

    settings_sha256: str | None = None
    """The SHA-256 of the settings file in force, in hexadecimal. null: there is none."""
    classes: int
    """How many classes the order is cut into."""
    enforce: _Texts
    """Who enforces the order by the settings: switches, hosts. Empty: the controller only observes."""


class ProblemEvent(Message):
    """Data of the event ``problem``: a problem of ``GET /v1/status`` has appeared, or is gone."""

    problem: str
    """The problem, and its cause after a colon. Another cause is no other problem."""
    state: Literal["appeared", "gone"]
    """Whether it is there now."""


class GapEvent(Message):
    """Data of the event ``gap``: the client was too slow or away for too long, and some events are not kept any more.

    Read the present state by the other calls.
    """

    first: int
    """The first id that was missed."""
    last: int
    """The last id that was missed. It is also the id of this event."""


class EventDocument(Message):
    """An event: the data of each server-sent event, and each line of a recorded ``events.jsonl``."""

    id: int
    """The number of the event. It rises by 1. After a restart of the controller it goes on at a higher number."""
    event: Literal["plan", "job", "stage", "host", "switch", "settings", "problem", "audit", "gap"]
    """What has changed."""
    time: float
    """When, in seconds since the Unix epoch. In a recorded file: in seconds since the start of the experiment."""
    data: (
        PlanEvent
        | JobEvent
        | StageEvent
        | HostEvent
        | SwitchEvent
        | SettingsEvent
        | ProblemEvent
        | AuditRecord
        | GapEvent
    )
    """What it is now; the event names the body."""


class JobHistory(Message):
    """The samples of a job. Each list has one value a step; null where there is none."""

    bytes: Numbers
    """The bytes that the job has sent in the step."""
    service_class: Numbers
    """Its class at the end of the step."""
    iterations_done: Numbers
    """How many iterations it has done."""
    metric: Numbers
    """The latest value of its metric."""
    t90: Numbers
    """The iteration at which it is predicted to reach 90 % of convergence."""
    t95: Numbers
    """The same for 95 %."""
    target: Numbers
    """The iteration at which it is predicted to reach the target that it declares."""


class HistoryView(Message):
    """Body of ``GET /v1/history``: samples of jobs and ports, one each 5 s, of the last hour."""

    since: float
    """When the first step begins, in seconds since the Unix epoch."""
    step_seconds: float
    """The length of a step in seconds."""
    steps: int
    """How many steps there are."""
    jobs: dict[str, JobHistory]
    """The samples by job, also of jobs that are gone. A job without a sample yet is left out."""
    ports: dict[str, dict[str, Numbers]]
    """The bytes that a port has sent in each step, by class (other: all other traffic). A port is named by the datapath
    id of its switch, a colon, and its number."""
    left_out: int
    """How many jobs and ports have no samples now because there are too many."""


class NetworkHost(Message):
    """A host in the graph."""

    name: Name
    """The name of the host."""
    address: str | None
    """The first address of the host, of IPv4 where it has one. null: none is known."""
    alive: bool
    """Whether the lease of its agent runs."""


class NetworkSwitch(Message):
    """A switch in the graph: one that has connected, or that the settings name."""

    dpid: str
    """The datapath id, 16 hexadecimal digits."""
    connected: bool
    """Whether the switch is connected now."""
    ready: bool
    """Whether the switch is used."""
    reason: str | None
    """Why the switch is not ready. null: it is."""
    ports: Annotated[tuple[PortState, ...], Field(strict=False)]
    """The proof of the queues, by port."""
    problems: _Texts
    """What an operator should know although the switch is ready."""


class LinkEnd(Message):
    """One end of a link."""

    node: str
    """The name of a host, or the datapath id of a switch."""
    port: int | None
    """The OpenFlow port number at a switch. null: the end is a host."""
    interface: str | None = None
    """The name of the interface, at a host that has several. null: it has one, or the end is a switch."""


class NetworkLink(Message):
    """A link of the graph, in both directions."""

    a: LinkEnd
    """The end at a host, or at one of two switches."""
    b: LinkEnd
    """The end at a switch."""
    a_to_b_bps: float | None
    """The rate from a to b, in bit/s. null: it is not known."""
    b_to_a_bps: float | None
    """The rate from b to a, in bit/s. null: it is not known."""
    a_to_b_load_bps: dict[str, float] | None
    """What was sent from a to b in the last 5 s, in bit/s by class (other: all other traffic). null: nobody counts
    it."""
    b_to_a_load_bps: dict[str, float] | None
    """The same from b to a."""
    a_to_b_total_bps: float | None = None
    """What was sent from a to b in the last 5 s, in bit/s, in all classes together. Nothing else is counted of what a
    host sends. null: nobody counts it."""
    b_to_a_total_bps: float | None = None
    """The same from b to a."""
    problems: _Texts
    """Why the link is not ordered, at either end."""


class Network(Message):
    """Body of ``GET /v1/network``: hosts, switches and the links between them."""

    hosts: Annotated[tuple[NetworkHost, ...], Field(strict=False)]
    """The hosts of the settings."""
    switches: Annotated[tuple[NetworkSwitch, ...], Field(strict=False)]
    """The switches that have connected, and those that the settings name."""
    links: Annotated[tuple[NetworkLink, ...], Field(strict=False)]
    """The links of hosts to switches, and between switches, as far as the settings name them."""
    problems: _Texts
    """What an operator should look at."""
