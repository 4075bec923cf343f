"""What a simulation yields, by job, before anybody averages it.

Times are seconds of simulated time, and count from the first arrival of the workload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from controller.model import Port


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """One job. ``arrival`` is when it could begin (after the jobs that it waits for); ``end`` its last iteration's.

    ``iteration_ends[k - 1]`` is when iteration k was done by every lane; empty for a job of one iteration.
    """

    id: str
    arrival: float
    end: float
    bytes: float
    iteration_ends: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run of one policy. ``port_bytes``: what crossed each port; ``plans``: how many were made.

    ``wall_seconds`` is how long the run took, ``cpu_seconds`` the processor time of its process meanwhile: what the run
    costs, whatever else the machine did. ``timeline`` (only where it was asked for): of each watched port, rows (start,
    end, job number, bit/s), constant between two events.
    """

    policy: str
    jobs: Mapping[str, JobOutcome]
    port_bytes: Mapping[Port, float]
    plans: int
    iterations: int
    wall_seconds: float
    cpu_seconds: float
    timeline: Mapping[Port, NDArray[np.float64]] = field(default_factory=dict)
