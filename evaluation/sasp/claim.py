"""The claim ``sasp``: how much sooner real PyTorch jobs have their target with SaSP than with the best plain scheme.

The rule was written before the first run.

- **Tasks** are the three families of the study (``evaluation.sasp.study.tasks``), with four workers. Learning rates,
  strengths, targets and lengths are those to which the study tuned each arm, by the same budget, on seeds 1 to 3
  (``evaluation.sasp.study.plan``), with gradients as late as over the same transport. ``rates.json`` has them. The
  claim's seeds are others.
- **Arms.** Over a parameter server, where communication takes as long as computing, all schemes and ways of the study
  that go over one are measured, and ``bsp`` and ``bsp+sasp``, which train as ``bsp+overlap`` was tuned. Where it takes
  half and twice as long, these are ``bsp``, the plain schemes with ``+overlap`` and the default. Over all-reduce the
  only plain scheme is ``bsp+overlap``, which is DistributedDataParallel there.
- **The best plain scheme** of a task, transport and ratio is that of ``bsp+overlap``, ``ssp:2+overlap`` and
  ``asp+overlap`` which has the target soonest in this claim's own runs, in the mean over seeds. So what is luck in the
  choice is in its favour. **The default** of each transport is chosen by ``evaluation.sasp.study.chosen``, on the
  tuning seeds.
- **Communication.** Each network first trains a short job on links that do not limit it, which says how long forward
  and backward take with all workers at work. From that follows the rate of the links.
- **A run ends at its target**: as soon as a running median of three looks at worker 0's parameters, one after every ten
  iterations, has it. Who looks has a processor only where nobody else wants one. The target's time is that of the third
  look's parameters, however late they are looked at.
- **A run that never has the target** within its iterations, or within half an hour, stays in. As an arm's it counts
  twice its length, as the best plain scheme's its length once, so no arm gains by it. Claims say how many there are.
- **Savings** are of means over seeds, paired, with 95 % intervals. For all tasks together it is each seed's mean over
  tasks of an arm's time as a share of the best plain scheme's.

Arms in which less than a tenth of the processors was idle are counted: they measure the processors.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evaluation import summary
from evaluation.sasp import rates
from evaluation.sasp.figures import add_up
from evaluation.sasp.groups import RATIOS, Group
from evaluation.sasp.groups import groups as groups_of
from evaluation.sasp.tables import OVER, tables
from topologies.box.datapath import Wanted

__all__ = ["DATAPATH", "add_up", "groups", "headline", "plot", "tables"]

DATAPATH: Wanted = "user"
"""Of the machine's own processors the network has all; a box has one."""

_WORDS = {
    "target_seconds": "{} has the target sooner than the best plain scheme",
    "iteration_seconds": "{} takes less time an iteration than the best plain scheme",
}


def groups(*, quick: bool = False, others: bool = True) -> list[Group]:
    """Return all groups of the claim. Raises LabError where the study has not said what they need."""
    return groups_of(rates.load(), quick=quick, others=others)


def headline(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return every arm against the best plain scheme: time to target, and time of an iteration.

    The default over a parameter server, where communication takes as long as computing, is the arm ``default``, for
    each family and for ``all``. The default elsewhere has a name that says where.
    """
    return [
        _entry(setting, _Compared(name, fields["defaults"][setting["transport"]], family, measure), compared)
        for setting in fields["settings"]
        for family, arms in _families(setting).items()
        for name, measures in arms.items()
        if not _is_best_plain(setting, family, name)
        for measure, compared in measures.items()
    ]


class _Compared(NamedTuple):
    """What is compared: an arm, which may be the default, in a family or in all, by a measure."""

    name: str
    default: str
    family: str
    measure: str

    @property
    def arm(self) -> str:
        """The name of the arm in headlines."""
        return "default" if self.name == self.default else self.name


def _is_best_plain(setting: Mapping[str, Any], family: str, name: str) -> bool:
    tasks = setting["tasks"].values() if family == "all" else [setting["tasks"][family]]
    return all(values["best_plain"] == name for values in tasks)


def _families(setting: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """All families together, then each: what every arm was compared by."""
    return {"all": setting["all"]} | {
        task: {name: arm["against_best_plain"] for name, arm in values["arms"].items()}
        for task, values in setting["tasks"].items()
    }


def _entry(setting: Mapping[str, Any], what: _Compared, compared: Mapping[str, Any]) -> dict[str, Any]:
    where = f"{OVER[setting['transport']]}, communication {setting['ratio']:g} times computing"
    which = f"{len(setting['tasks'])} families" if what.family == "all" else what.family
    claim = summary.claim(
        f"{_WORDS[what.measure].format(what.arm)}, {which}, {where}{_never(compared, what.measure)}",
        metric=what.measure,
        unit="the best plain scheme's" if what.family == "all" else "s",
        baseline=compared["baseline"],
        value=compared["value"],
        interval=tuple(compared["reduction_ci95"]),
    )
    first = (setting["transport"], setting["ratio"]) == ("server", RATIOS[0])
    return claim | {
        "arm": what.arm if first else f"{what.arm}, {where}",
        "baseline_arm": "best plain",
        "family": what.family,
        "transport": setting["transport"],
        "ratio": setting["ratio"],
    }


def _never(compared: Mapping[str, Any], measure: str) -> str:
    """Returns how many runs never had the target, where there are any."""
    if measure != "target_seconds" or not compared["own_never"] + compared["baseline_never"]:
        return ""
    return (
        f" (never there: {compared['own_never']} of {compared['pairs']} runs, of the best plain scheme "
        f"{compared['baseline_never']})"
    )


def plot(fields: Mapping[str, Any], folder: Path) -> None:
    """What arms save of the best plain scheme's time, with intervals, into ``sasp.png``."""
    from evaluation.sasp.plot import saved  # noqa: PLC0415 (matplotlib takes a second to load)

    saved(fields["settings"], folder / "sasp.png")
