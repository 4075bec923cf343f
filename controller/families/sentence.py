"""What a family says of the next run, in one sentence."""

from __future__ import annotations

from collections import Counter

from controller.families.history import FamilyHistory, Spread
from controller.families.run import Ending


def sentence(history: FamilyHistory) -> str:
    """Returns such as: 3 earlier runs of resnet50/cifar10: 0.941 to 0.946, 90 % at 14 to 20 % of the run.

    Runs that do not count are counted apart. Where the family is ignored the sentence says why.
    """
    if not history.runs:
        return f"no earlier run of {history.name} is known"
    facts = [_runs(history)]
    if history.converged is not None and history.share_t90 is not None:
        converged, share = _range(history.converged, 1, ".4g"), _range(history.share_t90, 100, ".2g")
        facts[0] += f": {converged}, 90 % at {share} % of the run"
    if flagged := _flagged(history):
        facts.append(f"not counted: {flagged}")
    if not history.gate.is_open:
        facts.append(f"ignored: {history.gate.reason}")
    return "; ".join(facts)


def _runs(history: FamilyHistory) -> str:
    count = history.counted or len(history.runs)
    return f"{count} earlier {'run' if count == 1 else 'runs'} of {history.name}"


def _range(values: Spread, factor: float, form: str) -> str:
    low, high = f"{factor * values.low:{form}}", f"{factor * values.high:{form}}"
    return low if low == high else f"{low} to {high}"


def _flagged(history: FamilyHistory) -> str:
    """Returns how many runs do not count, by how they ended; those of another metric are finished ones."""
    endings = Counter(run.ending for run in history.runs)
    other = endings.pop(Ending.FINISHED, 0) - history.counted
    parts = [f"{count} {ending}" for ending, count in sorted(endings.items())]
    return ", ".join([*parts, *([f"{other} of another metric"] if other else [])])
