"""What the simulator runs: jobs as steps of computing and sending, on hosts, alone or in lanes. Values only.

A coflow of a trace is a job of one iteration with one transfer; a training job repeats its steps; a job whose workers
may run apart (SSP, ASP) has a lane for each. Where computing and sending overlap (SaSP) a worker has a lane for its
computing and one for each of its layers, which wait for each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from controller.model import Demand, Host, Metric, Task


@dataclass(frozen=True, slots=True)
class Compute:
    """Seconds in which nothing is sent."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Transfer:
    """Flows that start together; the step ends with the last of them. A flow of 0 bytes ends at once.

    ``flows`` may name a pair of hosts several times: these are flows of their own, which share one by one. A flow whose
    source is its destination loads both ports of that host, as in a coflow trace.

    In a relay hosts pass on what they receive, as in a ring all-reduce. ``after`` names, for each flow, the flows whose
    chunks it passes on, by their places in ``flows``, two at most. Each flow sends ``chunks`` equal chunks one after
    another: chunk k (from 0) as soon as those flows have sent their chunk k - ``lag``. Without ``after`` no flow waits
    for another.

    ``turn``: of a job's transfers that name the same number one goes at a time; of those that wait the one of the
    oldest iteration is next, then that of the least ``urgency``. None: it waits for no other.
    """

    flows: tuple[Demand, ...]
    after: tuple[tuple[int, ...], ...] = ()
    chunks: int = 1
    lag: int = 0
    turn: int | None = None
    urgency: int = 0


@dataclass(frozen=True, slots=True)
class Await:
    """Go on in iteration k (from 1) once lane ``lane`` of the job (from 0) has taken its step ``step`` (from 0) at
    least k - ``lag`` times."""

    lane: int
    step: int
    lag: int = 0


Step = Compute | Transfer | Await


@dataclass(frozen=True, slots=True)
class SimJob:
    """One job. It arrives at ``arrival`` and, if it has any, after the last of the jobs in ``after`` has ended.

    Each lane repeats its steps ``iterations`` times. A lane may start iteration k (from 1) when every lane of the job
    has finished iteration k - 1 - ``staleness`` (0: BSP; None: ASP, no limit). An iteration of the job is done when
    every lane has done it. ``curve[k - 1]`` is the metric after iteration k (empty: the job reports none).
    ``family``: policies are shown what jobs of the same family that ended before have shown (empty: it has none).
    ``target`` is the value of the metric that its user declares as done. ``rungs_left`` counts the rungs of its study
    that follow its stage; None: its tuner does not tell.
    """

    id: str
    lanes: tuple[tuple[Step, ...], ...]
    arrival: float = 0.0
    iterations: int = 1
    staleness: int | None = 0
    after: tuple[str, ...] = ()
    weight: float = 1.0
    stage: str | None = None
    rungs_left: int | None = None
    metric: Metric = Metric()  # noqa: RUF009 - frozen, so all may share it
    target: float | None = None
    curve: tuple[float, ...] = ()
    tasks: tuple[Task, ...] = ()
    model: str = ""
    family: str = ""


@dataclass(frozen=True, slots=True)
class Workload:
    """Jobs on hosts, and the stages that some of them belong to (stage id -> job ids; a job names its stage, too).

    ``earlier`` are jobs that had ended before the first arrival, oldest first. Of these only family, metric, curve and
    iterations count.
    """

    name: str
    hosts: Mapping[str, Host]
    jobs: tuple[SimJob, ...]
    seed: int | None = None
    stages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    earlier: tuple[SimJob, ...] = ()
