"""What is wrong with a job: progress that is not believed or cannot be read, and demand that is measured otherwise.

It is said in sentences. A disagreement that lasts is logged once, and so is progress that is not believed.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from controller.declared.declared import Declared
from controller.model import Demand
from controller.registry.job.measured_demand import Measurement, disagreements

LOG = logging.getLogger("trainyard.registry")
MAX_UNREAD_HOSTS = 8
"""Remember of so many hosts why they cannot read a job's progress."""


class Problems:
    """The problems of one run of the job ``job_id``."""

    def __init__(self, job_id: str) -> None:
        self._job_id = job_id
        self._is_doubted = False
        self._is_disputed = False
        self._unread: dict[str, str] = {}

    def sentences(self, declared: Sequence[Demand], measured: Measurement | None) -> tuple[str, ...]:
        """Returns sentences about declared demand that is measured otherwise, and about output that is not read."""
        return (
            *_disagreements(declared, measured),
            *(f"{host} cannot read its progress: {why}" for host, why in self._unread.items()),
        )

    def note_unread(self, host: str, reason: str) -> None:
        """Note why a host cannot read the job's progress; empty: it can."""
        self._unread.pop(host, None)
        if reason and len(self._unread) < MAX_UNREAD_HOSTS:
            self._unread[host] = reason

    def doubt(self, reason: str) -> None:
        """Log why reported points are not believed, for the first of them."""
        if not self._is_doubted:
            self._is_doubted = True
            LOG.warning("job %s: %s", self._job_id, reason)

    def check_demand(self, declared: Sequence[Demand], measured: Measurement | None) -> None:
        """Log once that the declared demand is not the measured one, and once that it is again."""
        problems = _disagreements(declared, measured)
        # The numbers change all the time; whether there is a disagreement does not.
        if bool(problems) != self._is_disputed:
            self._is_disputed = bool(problems)
            if problems:
                LOG.warning("job %s: %s", self._job_id, "; ".join(problems))
            else:
                LOG.info("job %s: its declared demand is the measured one again", self._job_id)


def unmeasured(spec: Declared) -> tuple[str, ...]:
    """Returns a sentence where a job declares traffic whose bytes nobody measures, and no demand."""
    if spec.demand or not spec.claims.go_beyond_tcp:
        return ()
    return (
        "it declares traffic that is not TCP, and no demand: agents measure the bytes of TCP alone; declare demand",
    )


def _disagreements(declared: Sequence[Demand], measured: Measurement | None) -> tuple[str, ...]:
    return disagreements(declared, measured) if declared and measured is not None else ()
