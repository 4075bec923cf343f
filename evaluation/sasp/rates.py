"""What the claim takes from the study: learning rates, targets, lengths, and the defaults.

``python -m evaluation.sasp.study rates`` writes the file, from finished records alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from evaluation.sasp.study.arms import Transport
from topologies.errors import LabError

FILE = Path(__file__).parent / "rates.json"


@dataclass(frozen=True, slots=True)
class Compared:
    """An arm on the study's test seeds: iterations to the target, and the metric at the end, in the mean."""

    iterations: float
    last: float


@dataclass(frozen=True, slots=True)
class ArmRates:
    """An arm as it was tuned. ``iterations``: to the target on the tuning seeds, in the mean.

    ``iteration_seconds``: of an iteration, as recorded on the testbed, or with computing of an iteration as the unit.
    """

    rate: float
    strength: float
    iterations: float
    iteration_seconds: float
    compared: Compared | None = None


@dataclass(frozen=True, slots=True)
class TaskRates:
    """A task: its optimiser, its length in iterations, and the metric to reach.

    ``arms``: as they were tuned, by the transport over which their gradients were late, and by name. ``needed``,
    ``ready``: shares of computing at which layers are needed, and their gradients ready; ``sizes``: their
    elements; all front first.
    """

    optimizer: str
    iterations: int
    target: float
    needed: tuple[float, ...]
    ready: tuple[float, ...]
    sizes: tuple[int, ...]
    arms: Mapping[Transport, Mapping[str, ArmRates]]


@dataclass(frozen=True, slots=True)
class Rates:
    """All tasks. ``defaults``: what is to be the default of ``sasp.join`` (server) and of ``sasp.wrap`` (ranks)."""

    workers: int
    defaults: Mapping[Transport, str]
    tasks: Mapping[str, TaskRates]


def load(path: Path | None = None) -> Rates:
    """Read the file. Raises LabError."""
    path = path or FILE
    try:
        return TypeAdapter(Rates).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise LabError(
            f"{path} is not there: the claim's learning rates, targets and arms come from the study, which is not "
            "finished; `python -m evaluation.sasp.study rates` writes the file once it is"
        ) from error
    except (OSError, ValidationError) as error:
        raise LabError(f"{path}: no rates of the study: {error}") from error
