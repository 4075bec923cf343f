"""The lab's requests and results, as values that are JSON on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import TypeAdapter

from controller.enforcement import PLACES, Identity, Place
from topologies.experiments.addressing import Families
from topologies.experiments.declaration import Declaration
from topologies.experiments.experiment import Experiment
from topologies.lab.queue_proof import QueueProof
from topologies.lab.use.meters import LinkUse
from topologies.lab.use.tcp_use import TcpUse
from topologies.studies.process import StudyResult
from topologies.trainer.barriers.waits import BarrierWait

Served = Literal["controller", "plain", "dscp"]
"""By the controller's rules and queues; or by the switches' own configuration, see ``own_switches``."""
TensorLightsOrder = Literal["tls-one", "tls-rr", "tls-each"]
"""TensorLights orders the hosts' NICs: with fixed bands, with bands in turn, or with a fixed band for each job."""
TENSORLIGHTS_ORDERS: frozenset[str] = frozenset(get_args(TensorLightsOrder))
Point = tuple[float, int, float]
"""Seconds since the job's arrival, iterations done, metric."""


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy to run, with its options. Results use its ``label``, or its name where there is none.

    ``nic`` says what orders the hosts' NICs: the controller's plan, TensorLights on each host, or nothing. Where
    nothing does, a NIC has one queue, or several to which connections are hashed.
    ``declares``: what jobs declare in this arm beside the experiment, by job id. It changes what the policy knows; the
    jobs, the network and the measures are those of the other arms. ``plugins``: a folder with further policies,
    from the top of the checkout, which the arm's controller finds by their entry points as if they were installed;
    empty: there is none. ``enforce`` and ``identity`` are the controller's settings of these names. ``served`` says how
    switches serve packets that the controller leaves alone, or that it does not.
    """

    policy: str
    options: Mapping[str, Any] = field(default_factory=dict)
    label: str = ""
    nic: Literal["plan", "none", "hashed"] | TensorLightsOrder = "plan"
    declares: Mapping[str, Declaration] = field(default_factory=dict)
    plugins: str = ""
    enforce: tuple[Place, ...] = PLACES
    identity: Identity = "flows"
    served: Served = "controller"

    @property
    def name(self) -> str:
        """The label; without one the policy's own name."""
        return self.label or self.policy


@dataclass(frozen=True, slots=True)
class LabRequest:
    """Experiments on one network, each under every policy in turn.

    All experiments must agree on the network: topology, hosts, rates, queues. ``queue_proof``: prove the queues first.
    ``alone_iterations``: measure each job alone for so many iterations; 0 measures none. Only the testbed allows it.
    """

    experiments: tuple[Experiment, ...]
    policies: tuple[PolicyChoice, ...]
    queue_proof: bool = False
    alone_iterations: int = 0


@dataclass(frozen=True, slots=True)
class JobResult:
    """One job of an arm: seconds from its arrival by its trainer's own clock; None: it did not reach that point.

    ``watched_seconds`` are from its arrival to its end, or to the end of the experiment. ``barrier`` says how its
    workers waited for each other, where the experiment wants that recorded.
    """

    t90_seconds: float | None
    t95_seconds: float | None
    jct_seconds: float | None
    censored: bool
    watched_seconds: float
    history: tuple[Point, ...]
    barrier: BarrierWait | None = None


@dataclass(frozen=True, slots=True)
class Control:
    """What the control loop did in one arm.

    ``report_to_rule_*`` are seconds, over the ``report_to_rule_count`` reports that triggered a plan.
    """

    report_to_rule_count: int
    report_to_rule_p50: float | None
    report_to_rule_p99: float | None
    plans: int
    flow_mods: int
    gate_renewals: int


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One policy on one experiment.

    ``bytes_by_class``: what the switches sent by class, first served first, and last all other traffic; what passes
    several switches counts at each.
    ``cpu_idle_share``: of all processors that the lab saw, from the experiment's start to the end, and ``cpu_variance``
    is its variance over samples of a second; ``links``: of each host's link in the same time; ``tcp``: what TCP did on
    each host. Of studies' jobs ``jobs`` has those that were called.
    """

    experiment: str
    seed: int
    policy: str
    jobs: Mapping[str, JobResult]
    control: Control
    bytes_by_class: tuple[int, ...]
    cpu_idle_share: float
    seconds: float
    links: tuple[LinkUse, ...] = ()
    studies: tuple[StudyResult, ...] = ()
    cpu_variance: float = 0.0
    tcp: tuple[TcpUse, ...] = ()


@dataclass(frozen=True, slots=True)
class LabResult:
    """The result of a request. ``alone_seconds`` are of one iteration, by experiment with seed and by job."""

    datapath: Literal["kernel", "uml", "user"]
    hosts: int
    link_bps: float
    queues: int
    queue_proof: QueueProof | None
    alone_seconds: Mapping[str, Mapping[str, float]]
    arms: tuple[ArmResult, ...]
    topology: Literal["testbed", "leaf_spine"] = "testbed"
    rails: int = 1
    addresses: Families = "ipv4"


@dataclass(frozen=True, slots=True)
class LabEvent:
    """A step of progress: ``done`` of ``total``, which is 0 where it is not known."""

    phase: Literal["network", "proof", "alone", "arm"]
    text: str
    experiment: str = ""
    policy: str = ""
    done: int = 0
    total: int = 0
    seconds: float = 0.0


def key(experiment: Experiment) -> str:
    """Return the name that results give an experiment and its seed."""
    return f"{experiment.name}-{experiment.seed}"


def save(path: Path, value: Any) -> None:
    """Write a value as JSON, whole or not at all. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(TypeAdapter(type(value)).dump_json(value, indent=1))
    part.replace(path)


def load_result(path: Path) -> LabResult:
    """Read a LabResult. Raises OSError, ValueError."""
    return TypeAdapter(LabResult).validate_json(path.read_bytes())


def load_request(path: Path) -> LabRequest:
    """Read a LabRequest. Raises OSError, ValueError."""
    return TypeAdapter(LabRequest).validate_json(path.read_bytes())
