"""From the epochs that a job's output counts to the iterations that its spec declares. Pure.

A spec of 5,000 iterations and an output of 10 epochs are of one run, so an epoch is 500 iterations. Where one of the
two is not known, the unit is the epoch.
"""

from __future__ import annotations

from host_reporter.readers.parse import Described


def iterations_of_epoch(declared: float | None, described: Described) -> float | None:
    """Returns the iterations of an epoch; None: an epoch stays one. ``declared`` is the length that the spec has."""
    epochs = described.iterations
    if not described.counts_epochs or declared is None or epochs is None or declared <= epochs:
        return None
    return declared / epochs


class EpochScale:
    """What the points of one run are multiplied by. It stays as it was at the first point: a run has one unit."""

    def __init__(self) -> None:
        self._factor: float | None = None

    def factor(self, declared: float | None, described: Described) -> float:
        """Returns the factor of a point; see ``iterations_of_epoch``."""
        if self._factor is None:
            self._factor = iterations_of_epoch(declared, described) or 1.0
        return self._factor

    def counts_epochs(self, declared: float | None, described: Described) -> bool:
        """Returns whether what is reported counts epochs."""
        factor = self._factor or iterations_of_epoch(declared, described) or 1.0
        return described.counts_epochs and factor == 1.0
