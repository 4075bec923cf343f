"""What the testbed of ``scripts/evaluate sasp`` is asked and what it answers, as values that are JSON on disk."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from controller.model import BITS_PER_BYTE
from evaluation.sasp.study.arms import Transport
from evaluation.sasp.study.runs import reached
from sasp.core.staleness import Prediction, Rates
from topologies.box.datapath import Datapath

TaskName = Literal["cnn", "transformer", "mlp"]
TASK_NAMES: tuple[TaskName, ...] = ("cnn", "transformer", "mlp")
"""The families of the study (``evaluation.sasp.study.tasks``), which needs PyTorch."""

Point = tuple[float, int, float]
"""Seconds since the start, worker 0's iterations, the metric of its parameters then."""


LOOKS, MEETING, POINTS = "looks", "meeting", "points.json"
"""In a job's folder: worker 0's parameters, where the start is announced, and what was found in the parameters."""


def name_of(rank: int) -> str:
    """The file of a worker's result."""
    return f"worker{rank}.json"


@dataclass(frozen=True, slots=True)
class Ways:
    """What is done about late gradients: see ``sasp.join`` and ``sasp.wrap``."""

    partial: bool = False
    prediction: Prediction = "none"
    delay_compensation: float = 0.0
    rates: Rates = "plain"
    halves: bool = False


NOTHING = Ways()
"""Nothing is done about late gradients."""


@dataclass(frozen=True, slots=True)
class Training:
    """One PyTorch job. ``name``: as a folder can be called.

    ``target``: the metric at which it may end; None: it goes through all iterations, and nobody looks at it. Without an
    ``optimizer`` or a ``learning_rate`` it has the task's own.
    """

    name: str
    scheme: str
    iterations: int
    ways: Ways = NOTHING
    target: float | None = None
    optimizer: str = ""
    learning_rate: float | None = None


@dataclass(frozen=True, slots=True)
class SaspRequest:
    """Jobs of one task, one after the other, alone on one network whose links let communication take a time.

    ``ratio``: what communication takes, as a share of what computing takes. ``accelerator_seconds``: a worker waits so
    long in each iteration beside its computing (see ``accelerator``). ``chunk_bytes``: SaSP's. ``record``: how late
    gradients are is recorded (see ``evaluation.sasp.emulation.recording``).
    """

    task: TaskName
    transport: Transport
    ratio: float
    seed: int
    workers: int
    accelerator_seconds: float
    trainings: tuple[Training, ...]
    limit_seconds: float
    chunk_bytes: int
    record: bool = False


def link_bps(transport: Transport, workers: int, model_bytes: int, seconds: float) -> float:
    """Return the rate of links with which an iteration's communication takes ``seconds``, in bit/s.

    At a parameter server's port all workers' gradients come in, and as much goes out meanwhile. In a ring a rank sends
    2 (n - 1) / n times the model: P. Patarasuk and X. Yuan, Journal of Parallel and Distributed Computing 69(2), 2009.
    """
    models = workers if transport == "server" else 2 * (workers - 1) / workers
    return models * model_bytes * BITS_PER_BYTE / seconds


@dataclass(frozen=True, slots=True)
class WorkerResult:
    """By the worker's own clock, so far. ``seconds``: from the start to the last of ``iterations``.

    ``pass_seconds``: the median of forward and backward, with what they wait for; ``processor_seconds``: of the
    training thread, of all iterations.
    """

    rank: int
    iterations: int
    seconds: float
    pass_seconds: float
    processor_seconds: float
    model_bytes: int


@dataclass(frozen=True, slots=True)
class ArmResult:
    """One training. ``cpu_idle_share``: of all processors that the lab saw, while it trained."""

    training: Training
    workers: tuple[WorkerResult, ...]
    points: tuple[Point, ...]
    cpu_idle_share: float

    @property
    def seconds_an_iteration(self) -> float:
        """The mean over workers."""
        return fmean(worker.seconds / worker.iterations for worker in self.workers)

    @property
    def reached(self) -> tuple[float, int] | None:
        """The seconds and iterations at which worker 0's parameters had the target; None: never."""
        if self.training.target is None:
            return None
        iteration = reached([(done, metric) for _, done, metric in self.points], self.training.target)
        if iteration is None:
            return None
        return next((seconds, done) for seconds, done, _ in self.points if done == iteration)

    @property
    def length_seconds(self) -> float:
        """What all of its iterations take."""
        return self.training.iterations * self.seconds_an_iteration


@dataclass(frozen=True, slots=True)
class SaspResult:
    """All that a request asked for.

    ``pass_seconds``: the median time of a worker's forward and backward, measured on links without a limit while all
    workers compute; ``link_bps`` follows from it and from ``model_bytes``.
    """

    datapath: Datapath
    torch: str
    pass_seconds: float
    model_bytes: int
    link_bps: float
    arms: tuple[ArmResult, ...]
