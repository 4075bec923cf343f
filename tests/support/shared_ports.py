"""The ports that jobs use, as arrays, from lists that tests write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from controller.ordering.loads import Ints


def as_shared(ports: Mapping[str, Sequence[int]]) -> dict[str, Ints]:
    """Returns the ports of each job as ``layered_and_inversions`` takes them: sorted, each once."""
    return {job: np.unique(np.array(used, dtype=np.int64)) for job, used in ports.items()}
