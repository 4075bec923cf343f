"""The arms of the claim ``sasp``: schemes on one network, for each transport, ratio, task and seed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from evaluation.claim import Setting
from evaluation.sasp.rates import Rates, TaskRates
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Transport, going_over
from evaluation.sasp.study.plan import BASELINE
from evaluation.sasp.testbed import lab
from evaluation.sasp.testbed.request import TASK_NAMES, SaspRequest, SaspResult, TaskName, Training, Ways

SEEDS = range(41, 45)
"""Seeds that nothing was trained on before."""

RATIOS = (1.0, 0.5, 2.0)
"""What communication takes, as a share of what computing takes."""

ACCELERATOR_SECONDS: Mapping[TaskName, float] = {"cnn": 0.06, "transformer": 0.18, "mlp": 0.054}
"""With these, links on which communication takes as long as computing carry 50 to 77 Mbit/s, and two processors are not
what is waited for: they were idle for 19 to 68 % of each arm over a parameter server, and for 18 to 62 % over
all-reduce (``cpu_idle_share``, ``python -m evaluation.sasp.delays``, commits 455480b3 and e7f6eb69)."""

LIMIT_SECONDS = 1800.0
CHUNK_BYTES = 16 * 1024
"""As links and models are a small part of what they are elsewhere, so are the chunks of SaSP."""

PLAIN, ORDER = "bsp", "bsp+sasp"
"""Nothing overlaps; and front layers go first, with nothing late. These are trained as ``BASELINE`` was tuned."""

QUICK_SEED, QUICK_ITERATIONS = 1, 60


@dataclass(frozen=True, slots=True)
class Group:
    """The arms of one task that share a network and a seed."""

    task: TaskName
    transport: Transport
    ratio: float
    seed: int
    rates: Rates
    names: tuple[str, ...]
    iterations: int | None = None

    @property
    def name(self) -> str:
        """The name of the group's folder."""
        return f"{self.transport}-{self.ratio:g}-{self.task}-{self.seed}"

    @property
    def arms(self) -> int:
        """The number of arms."""
        return len(self.names)

    @property
    def answer(self) -> type[SaspResult]:
        """The type of its results."""
        return SaspResult

    @property
    def of_task(self) -> TaskRates:
        """The rates of its task."""
        return self.rates.tasks[self.task]

    @property
    def in_turn(self) -> tuple[str, ...]:
        """The arms as they are trained, one after the other. Each seed begins elsewhere, evenly among the arms."""
        turn = (self.seed - SEEDS[0]) * len(self.names) // len(SEEDS) % len(self.names)
        return self.names[turn:] + self.names[:turn]

    def asked(self) -> SaspRequest:
        """Return the request."""
        trainings = [training(self.of_task, self.transport, name) for name in self.in_turn]
        if self.iterations is not None:
            trainings = [replace(one, iterations=self.iterations) for one in trainings]
        return SaspRequest(
            self.task, self.transport, self.ratio, self.seed, self.rates.workers, ACCELERATOR_SECONDS[self.task],
            tuple(trainings), LIMIT_SECONDS, CHUNK_BYTES,
        )  # fmt: skip

    def run(self, setting: Setting) -> SaspResult:
        """Measure. Raises one of the lab's EXPECTED_ERRORS."""
        return lab.LAB.run(self.asked(), setting.wanted, setting.folder, stop=setting.stop)

    def read(self, folder: Path) -> SaspResult:
        """Read the result that ``run`` left. Raises OSError, ValueError."""
        return lab.LAB.read(folder)

    def small(self, result: SaspResult) -> SaspResult:
        """Return the result with the last three looks of each arm: those have the target, if any have it."""
        return replace(result, arms=tuple(replace(arm, points=arm.points[-3:]) for arm in result.arms))


def training(rates: TaskRates, transport: Transport, name: str) -> Training:
    """Return the job of an arm, with the learning rate and the strength that it was tuned to over this transport."""
    if name in {PLAIN, ORDER}:
        return _job(rates, name, name, Ways(), rates.arms[transport][BASELINE].rate)
    arm, tuned = ARMS[name], rates.arms[transport][name]
    ways = Ways(arm.layers == "needed", arm.late.prediction, tuned.strength, arm.late.rates, arm.halves)
    return _job(rates, arm.folder, str(arm.scheme), ways, tuned.rate)


def _job(rates: TaskRates, folder: str, scheme: str, ways: Ways, rate: float) -> Training:
    return Training(folder, scheme, rates.iterations, ways, rates.target, rates.optimizer, rate)


def names_of(rates: Rates, transport: Transport, ratio: float, *, others: bool = True) -> tuple[str, ...]:
    """Return the arms of a group: all where communication over a server takes as long as computing.

    Elsewhere, and with ``others`` of False, the plain schemes with ``+overlap`` and the default; and ``PLAIN``, with
    ``others``. Over all-reduce there are no SSP and ASP.
    """
    if others and transport == "server" and ratio == RATIOS[0]:
        return (PLAIN, ORDER, *going_over(transport))
    compared = (*going_over(transport, PLAIN_ARMS), rates.defaults[transport])
    return (PLAIN, *compared) if others else compared


def groups(rates: Rates, *, quick: bool = False, others: bool = True) -> list[Group]:
    """Return all groups, those with all arms first; quick: one seed of a short job, two arms.

    ``others`` of False: the plain schemes and the default alone.
    """
    if quick:
        names = (BASELINE, rates.defaults["server"])
        return [Group("cnn", "server", RATIOS[0], QUICK_SEED, rates, names, QUICK_ITERATIONS)]
    transports: tuple[Transport, ...] = ("server", "ranks")
    return [
        Group(task, transport, ratio, seed, rates, names_of(rates, transport, ratio, others=others))
        for transport in transports
        for ratio in RATIOS
        for task in TASK_NAMES
        for seed in SEEDS
    ]
