"""What the simulator says of the claim's studies, to stand beside what was measured: the policies, and the bounds.

The folder ``simulated_claim`` has the results, a file for each kind and seed. ``python -m evaluation.beamer.study
--curves claim --keep evaluation/beamer/simulated_claim`` makes them, with the claim's kinds and seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.beamer.arms import FAIR
from evaluation.beamer.study import add_up, read

FOLDER = Path(__file__).parent / "simulated_claim"
BOUNDS: Mapping[str, str] = {
    "search@classes=all,period=none": "the best fixed order found",
    "least": "no order beats",
}
"""The arms of the study that are no policies, and what they are called in the claim's table."""


def simulated(kind: str, seeds: Sequence[int], folder: Path = FOLDER) -> dict[str, Any]:
    """Returns what each simulated arm saves of fair sharing's mean SCT, with its interval, on these seeds.

    There are the arms that were simulated on all of the seeds. Raises OSError, ValueError for a damaged file.
    """
    paths = [folder / f"{kind}-{seed}.json" for seed in seeds]
    if not paths or not all(path.exists() for path in paths):
        return {}
    runs = [read(path) for path in paths]
    common = [arm for arm in runs[0] if all(arm in run for run in runs)]
    arms = add_up([{arm: run[arm] for arm in common} for run in runs])
    return {arm: values[f"sct_against_{FAIR}"] for arm, values in arms.items() if arm != FAIR}
