"""The values that all of the controller shares: frozen, typed, in SI units (seconds, bytes, bit/s).

Everything that the pure packages take and return is here. Nothing in this module does input or output.
Mappings inside values are treated as read-only by convention; nobody mutates one after construction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Literal, NamedTuple

from controller.code_points import POOL_2, CodePoints
from controller.families.history import FamilyHistory

BITS_PER_BYTE = 8

MAX_CLASSES = 7
MAX_OFFLINE_CLASSES = 64
"""Cut an order that no switch serves (of a snapshot file, or in the simulator) into at most this many classes."""


MAX_RUNGS = 100
"""A study has at most this many rungs."""

TrafficProtocol = Literal["tcp", "udp", "rocev2", "any"]
"""What packets of a job's flow are: TCP, UDP, RoCEv2, or all packets of IP between two hosts."""

WITH_PORTS: frozenset[TrafficProtocol] = frozenset({"tcp", "udp"})
"""The protocols that have ports by which a job is known."""

ROCEV2_PORT = 4791
"""The UDP port that packets of RoCEv2 are sent to (InfiniBand architecture, annex A17)."""


class Direction(StrEnum):
    """Which way bytes cross a host's link, seen from the host."""

    INGRESS = "ingress"
    EGRESS = "egress"


class Role(StrEnum):
    """What a task of a job does: parameter server, worker, or a peer of an all-reduce."""

    PS = "ps"
    WORKER = "worker"
    PEER = "peer"


@dataclass(frozen=True, slots=True, order=True)
class Port:
    """A link in one direction, where jobs compete: a host's ingress or egress.

    For a link between switches (see ``Routes``) ``host`` names the link or the switch's port instead.
    """

    host: str
    direction: Direction


def server_of(name: str) -> str:
    """Returns the server of an endpoint; a server's own name is returned as it is."""
    return name.partition("/")[0]


def endpoint(server: str, interface: str | None) -> str:
    """Returns the name of an interface of a server; the server's own where it is not known which one."""
    return server if interface is None else f"{server}/{interface}"


@dataclass(frozen=True, slots=True)
class Host:
    """An endpoint: an interface of a server, with the rates of its link in bit/s and where it is plugged in.

    ``name`` is the server's where the server has one interface, and ``SERVER/INTERFACE`` where it has several. So the
    name of a server that has several is no endpoint: it stands for all of them. ``address`` is the first IPv4 address,
    and ``more_addresses`` are its other ones and the IPv6 addresses. ``interface`` is the interface's name on the
    server. What is not known is None.
    """

    name: str
    ingress_bps: float = 1e9
    egress_bps: float = 1e9
    address: str | None = None
    switch: int | None = None
    switch_port: int | None = None
    more_addresses: tuple[str, ...] = ()
    mac: str | None = None
    interface: str | None = None

    @property
    def server(self) -> str:
        """Returns the name of the server."""
        return server_of(self.name)

    @property
    def addresses(self) -> tuple[str, ...]:
        """Returns all addresses of the interface, of both families, the first IPv4 address first."""
        return self.more_addresses if self.address is None else (self.address, *self.more_addresses)

    def rate_bps(self, direction: Direction) -> float:
        """Returns the rate of the link in this direction, in bit/s."""
        return self.ingress_bps if direction is Direction.INGRESS else self.egress_bps


def first_address(interfaces: Iterable[Host]) -> str | None:
    """Returns the first address of a server's interfaces, of IPv4 where there is one; None: none is known."""
    return min((address for host in interfaces for address in host.addresses), key=lambda one: ":" in one, default=None)


class Demand(NamedTuple):
    """Bytes that one iteration of a job sends from one host to another.

    A tuple, since a simulation makes millions of them.
    """

    src: str
    dst: str
    bytes: float


class Task(NamedTuple):
    """One process of a job. ``port`` is the TCP or UDP port that it listens on, if it does."""

    role: Role
    host: str
    port: int | None = None
    protocol: TrafficProtocol = "tcp"


class Flow(NamedTuple):
    """One direction of a job's traffic between two hosts; a port of None matches any.

    RoCEv2 is known by its hosts alone, and so is ``any``: neither has a port. A tuple, since a job may have thousands
    of them.
    """

    job: str
    src: str
    dst: str
    src_port: int | None = None
    dst_port: int | None = None
    protocol: TrafficProtocol = "tcp"


@dataclass(frozen=True, slots=True)
class Listeners:
    """Ports that a job's tasks listen on: what the hosts ``among`` send to them and get from them is the job's.

    ``ends`` has each port with its host. It stands for all flows between these ports and hosts, which would be as many
    as the two multiplied.
    """

    ends: tuple[tuple[str, int], ...] = ()
    among: tuple[str, ...] = ()


NO_LISTENERS = Listeners()


@dataclass(frozen=True, slots=True)
class Progress:
    """One report of a job: iterations done, when (seconds), and the metric then, if it was measured."""

    iteration: float
    time: float
    metric: float | None = None


@dataclass(frozen=True, slots=True)
class Metric:
    """What a job's progress is measured by, and which way is better."""

    name: str = "accuracy"
    direction: Literal["max", "min"] = "max"


@dataclass(frozen=True, slots=True)
class Job:
    """A training job as the policies see it.

    ``target`` is the value of the metric that its user calls done; None: none is declared. ``diverged``: its run has
    reported that the metric or the loss is no finite number.

    ``demand`` is for one iteration; ``iterations_left`` may be fractional or 0. ``iterations_total`` is the
    length of the whole run where it is known. ``sent_bytes`` is what has been measured to leave each host
    for this job since it began; ``is_counted``: whether any host measures it. ``listeners`` are claimed beside the
    declared ``flows``; they are TCP's, and ``udp_listeners`` UDP's. ``found`` are flows that hosts found beside both,
    and ``found_more`` how many were too many to name; a host of ``found_on`` knows the job's sockets itself.
    ``family``: what earlier runs of the same training say; None: the job has no family. ``dscp``: the DSCP that the job
    has for its life; None: jobs have those of classes. ``rungs_left`` counts the rungs of the job's study that
    follow its stage; None: that is not known.
    """

    id: str
    demand: tuple[Demand, ...] = ()
    arrival: float = 0.0
    weight: float = 1.0
    stage: str | None = None
    iterations_left: float = 1.0
    iterations_total: float | None = None
    compute_seconds: float = 0.0
    progress: Sequence[Progress] = ()
    metric: Metric = Metric()
    target: float | None = None
    diverged: bool = False
    tasks: tuple[Task, ...] = ()
    flows: tuple[Flow, ...] = ()
    listeners: Listeners = NO_LISTENERS
    udp_listeners: Listeners = NO_LISTENERS
    found: tuple[Flow, ...] = ()
    found_more: int = 0
    found_on: frozenset[str] = frozenset()
    sent_bytes: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    is_counted: bool = True
    family: FamilyHistory | None = None
    dscp: int | None = None
    rungs_left: int | None = None

    @property
    def iterations_done(self) -> float:
        """Returns how many iterations the job has reported as finished."""
        try:
            return self.progress[-1].iteration
        except IndexError:
            return 0.0


@dataclass(frozen=True, slots=True)
class Stage:
    """Jobs of one hyper-parameter rung that end together."""

    id: str
    jobs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch that is connected and ready. ``inner_ports`` lead to other switches, whose DSCP is trusted.

    ``trusted_ports`` are host ports whose DSCP is believed where switches go by it; None trusts every host port.
    ``control_ports`` are ports whose control traffic goes first, each with the number of the meter that limits it.
    """

    dpid: int
    inner_ports: frozenset[int] = frozenset()
    trusted_ports: frozenset[int] | None = None
    control_ports: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Routes:
    """Where traffic runs between the hosts' own links: what makes a link inside a fabric a port of the ordering.

    ``links`` are the links, one direction each, that can be scarce, with their rates in bit/s (above 0); one whose rate
    is not known is none of them. ``crossed`` gives, for a source and a destination, the positions in ``links`` of those
    on the way, each once; none where there are none, or the way is not known. It is pure and fast, for it is asked for
    every pair of hosts of every job. What is worked out from routes is remembered as long as they are the same object.
    ``site`` says where a host is plugged in: what hosts of one site send crosses the same links, whoever it is for.
    """

    links: tuple[tuple[Port, float], ...]
    crossed: Callable[[str, str], tuple[int, ...]]
    site: Callable[[str], Hashable] = str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What is known at one moment: the input of a plan.

    ``period`` is the controller's T in seconds, the unit in which ageing counts. ``routes`` is None where nothing but
    the hosts' own links can be scarce, or it is not known what else is. ``degraded``: there are more flows than
    switches have room for, so that they look at the hosts' marks instead. ``has_places``: switches have room for the
    rules of jobs' hosts, by which traffic between them gets a class that nothing else tells apart; without
    ``has_places_between_jobs`` only for those of hosts that share a job. ``acknowledging``: hosts that mark their jobs'
    acknowledgements, and let no program do so. ``tunnels``: hosts that give the outer headers of tunnels to these UDP
    ports the DSCP of the job inside, and let no program do so. ``code_points`` are the DSCPs, of ``classes`` classes at
    least, or those that jobs can have. ``is_lossless``: classes have the queues of lossless priorities.
    """

    now: float
    hosts: Mapping[str, Host]
    jobs: tuple[Job, ...]
    classes: int = MAX_CLASSES
    stages: tuple[Stage, ...] = ()
    switches: tuple[Switch, ...] = ()
    period: float = 5.0
    routes: Routes | None = None
    degraded: bool = False
    has_places: bool = True
    has_places_between_jobs: bool = True
    acknowledging: frozenset[str] = frozenset()
    tunnels: Mapping[str, tuple[int, ...]] = field(default_factory=lambda: MappingProxyType({}))
    code_points: CodePoints = POOL_2
    is_lossless: bool = False


class Prediction(NamedTuple):
    """When a policy expects a job to reach a target: the metric there, and the iteration, counted from the job's start.

    ``target`` is t90 or t95 (90 % or 95 % of convergence), or target (the value that the job declares). ``low`` and
    ``high`` are the ends of the 80 % interval of ``iteration``. ``is_reached``: the policy takes the target as reached
    already, at about ``iteration``.
    """

    target: Literal["t90", "t95", "target"]
    metric: float
    iteration: float
    low: float
    high: float
    is_reached: bool = False


@dataclass(frozen=True, slots=True)
class Ordering:
    """A policy's answer: bands of job ids, first served first; the jobs of one band share.

    ``reasons`` says why for each job, in a sentence with numbers. ``memory`` is the policy's own: numbers by
    key that it gets back with the next snapshot, so that the policy itself keeps no state. ``watch`` gives, for
    a job, the metric value whose crossing should cause a new plan at once. ``until`` is the moment, in the
    snapshot's clock, from which the order may be another though nothing has happened; infinite: there is none.
    ``predictions`` say when jobs reach their targets, for people; a policy that predicts nothing has none.
    """

    policy: str
    bands: tuple[tuple[str, ...], ...]
    reasons: Mapping[str, str]
    memory: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    watch: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    until: float = math.inf
    predictions: Mapping[str, tuple[Prediction, ...]] = field(default_factory=lambda: MappingProxyType({}))


def by_id(jobs: Iterable[Job]) -> dict[str, Job]:
    """Returns the jobs by id, in the order given."""
    return {job.id: job for job in jobs}
