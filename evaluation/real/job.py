"""A real training as a value, and what a rank of it has used. Ranks load this, and little else of the lab."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Model = Literal["mlp", "cnn"]


@dataclass(frozen=True, slots=True)
class RealJob:
    """A training of ``evaluation.real.training``: a rank a host. ``arrival`` is in seconds from the experiment's start.

    ``batch``: pictures a rank and iteration. ``look_every``: iterations from one held-out accuracy to the next.
    """

    id: str
    arrival: float
    hosts: tuple[str, ...]
    model: Model
    width: int
    batch: int
    learning_rate: float
    iterations: int
    seed: int
    look_every: int = 2

    @property
    def script_arguments(self) -> list[str]:
        """As the script takes them."""
        return [
            "--model", self.model, "--width", str(self.width), "--batch", str(self.batch),
            "--learning-rate", str(self.learning_rate), "--iterations", str(self.iterations),
            "--look-every", str(self.look_every), "--seed", str(self.seed),
        ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class RankUse:
    """What a rank used from its job's arrival to its own end.

    ``cpu_seconds``: its processor time. ``waited_seconds``: while it could run and had no processor, all of its threads
    together; None: this kernel does not tell.
    """

    job: str
    rank: int
    seconds: float
    cpu_seconds: float
    waited_seconds: float | None
