"""The ports that jobs use: as arrays, from lists that tests write, and as a matrix of loads has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from controller.model import Port
from controller.ordering.loads import Ints, LoadMatrix, PortNumbers


def as_shared(ports: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    """Returns the ports of each job as ``layered_and_inversions`` takes them: sorted, each once."""
    return {job: np.unique(np.array(used, dtype=np.int64)) for job, used in ports.items()}


def seconds_by_port(matrix: LoadMatrix, job: int, numbers: PortNumbers) -> dict[Port, float]:
    """Returns the seconds of a job, by its row in the matrix, at each of its ports."""
    here = slice(matrix.start[job], matrix.start[job + 1])
    ports, seconds = matrix.port[here].tolist(), matrix.seconds[here].tolist()
    return {numbers.port(port): value for port, value in zip(ports, seconds, strict=True)}
