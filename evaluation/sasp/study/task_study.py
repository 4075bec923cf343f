"""The study of one task: its runs, from the record or trained now, and what they add up to."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from evaluation.sasp.emulation.recording import read
from evaluation.sasp.study import plan, report
from evaluation.sasp.study.arms import ARMS, PLAIN_ARMS, Arm, Transport
from evaluation.sasp.study.plan import Setting
from evaluation.sasp.study.record import Record
from evaluation.sasp.study.recorded import at_ratio, recordings
from evaluation.sasp.study.runs import Goal, Run, Trained
from evaluation.sasp.study.tasks import Task
from evaluation.sasp.study.times import kept
from evaluation.sasp.study.training import train

Step = Literal["tune", "same-rate", "compare"]
"""On the tuning seeds, each arm with the rate to which it was tuned, or all with that of ``plan.BASELINE``, as users do
who do not tune; or on the other seeds."""


class TimeIsUpError(Exception):
    """The time is up, so no run may begin."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study keeps its runs, and where recorded jobs are, if there are any, ``over`` which transport.

    ``delays``: gradients are as late as there; ``seconds``: iterations take as long. ``ratio``: communication as a
    share of computing; ``latency``: likewise, where nothing is recorded.
    """

    out: Path
    delays: Path | None
    seconds: Path | None
    over: Transport
    ratio: float
    latency: float

    def at_ratio(self, folder: Path | None) -> Path | None:
        """Return the folder of what was recorded at this ratio, if anything is recorded."""
        return None if folder is None else at_ratio(folder, self.ratio)


class TaskStudy:
    """One task's runs. None begins after ``until``, by the monotonic clock."""

    def __init__(self, task: Task, optimizer: str, place: Place, until: float) -> None:
        """Raises OSError, ValueError."""
        self.offsets = kept(task, place.out / f"{task.name}-offsets.json")
        self.target = float("nan")
        self._until = until
        self._times = self.offsets.times(place.ratio, place.latency)
        self._record = Record(place.out / f"{task.name}-{optimizer}.jsonl")
        leads = {name: arm.leads(self._times) for name, arm in ARMS.items()}
        # Nothing is late in it, so it trains alike over all networks; and all targets come from it.
        in_step = {plan.BASELINE: recordings(place.delays, task.name, "server").get(plan.BASELINE, "")}
        delays = {**recordings(place.at_ratio(place.delays), task.name, place.over), **in_step}
        self._place = place
        self.setting = Setting(task.name, optimizer, task.rate[optimizer], task.iterations, leads, delays)

    def rows(
        self,
        arms: Sequence[str],
        step: Step = "tune",
        tell: Callable[[str], object] = lambda _line: None,
    ) -> list[report.Row]:
        """A row an arm; ``tell`` is called with each line as soon as it is known.

        Raises OSError, ValueError, SaspError, TimeIsUpError.
        """
        self.target = plan.target_of(self.setting, self._train)
        tell(f"{self.setting.task}: the target is {self.target:.4g}\n")
        rows = []
        for name in arms:
            choice = self._tuned(name)
            if step == "same-rate":
                choice = choice._replace(rate=self._tuned(plan.BASELINE).rate)
            runs = (plan.comparison if step == "compare" else plan.of_choice)(self.setting, name, choice, self.target)
            seconds = self._seconds(ARMS[name])
            rows.append(report.row([self._train(*run) for run in runs], self.target, seconds))
            tell(report.lines(rows, PLAIN_ARMS)[-1] + "\n")
        return rows

    def _tuned(self, arm: str) -> plan.Choice:
        return plan.tuned(self.setting, ARMS[arm], self.target, self._train)

    def _seconds(self, arm: Arm) -> float:
        """Return the seconds of an iteration, as recorded or computed."""
        place = self._place
        folder = place.at_ratio(place.seconds or place.delays)
        recorded = recordings(folder, self.setting.task, place.over).get(arm.name)
        if recorded is None:
            return arm.seconds(self._times)
        # With half batches what was recorded as an iteration is half of one.
        return read(Path(recorded)).iteration_seconds * (2 if arm.halves else 1)

    def _train(self, run: Run, goal: Goal) -> Trained:
        """The run, from the record or now. Raises OSError, TimeIsUpError."""
        if (known := self._record.get(run, goal)) is not None:
            return known
        if time.monotonic() > self._until:
            raise TimeIsUpError
        trained = train(run, goal)
        self._record.keep(trained)
        return trained
