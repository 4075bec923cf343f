"""Crux: the jobs that compute most for each second of network go first, so that GPUs wait least.

[known] J. Cao, Y. Guan, K. Qian et al.: Crux: GPU-Efficient Communication Scheduling for Deep Learning Training,
SIGCOMM 2024, doi:10.1145/3651890.3672239: a job's GPU intensity is I_j = W_j / t_j, where W_j is the computation of one
iteration, and t_j is the time of its slowest link in an iteration. The job with the highest goes first. (Crux also
chooses paths, and corrects the priorities by how much sending overlaps with computing. This policy does neither.)

[ours] W_j is in GPU-seconds: the declared compute time of an iteration times the number of the job's workers and peers
(1 where no tasks are declared). A job without demand needs no network, and its intensity is infinite. Cost O(n log n).
"""

from __future__ import annotations

import numpy as np

from controller.model import Job, Ordering, Role, Snapshot
from controller.ordering.loads import load_matrix
from controller.policies.base import Policy
from controller.quantities import duration


class Crux(Policy):
    """Jobs go by GPU intensity: the most computing for each second of network first."""

    name = "crux"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Orders jobs by GPU intensity, highest first."""
        link = load_matrix(snapshot).bottlenecks()
        work = np.array([job.compute_seconds * _gpus(job) for job in snapshot.jobs], dtype=float)
        intensity = np.full(len(snapshot.jobs), np.inf)
        np.divide(work, link, out=intensity, where=link > 0)
        arrival = np.array([job.arrival for job in snapshot.jobs], dtype=float)
        order = np.lexsort((arrival, -intensity)).tolist()
        return Ordering(
            policy=self.name,
            bands=tuple((snapshot.jobs[j].id,) for j in order),
            reasons={job.id: _reason(intensity[j], work[j], link[j]) for j, job in enumerate(snapshot.jobs)},
        )


def _reason(intensity: float, work: float, link: float) -> str:
    """Returns why a job has its place: its intensity, and the GPU-seconds and seconds that it comes from."""
    if link <= 0:
        return "sends nothing, so it delays no other job (highest GPU intensity goes first)"
    return (
        f"computes {intensity:.4g} GPU-seconds for each second of its busiest port (highest goes first): "
        f"{work:.4g} GPU-seconds and {duration(link)} in an iteration"
    )


def _gpus(job: Job) -> int:
    """Returns the number of tasks that compute; 1 where none is declared."""
    return sum(task.role is not Role.PS for task in job.tasks) or 1
