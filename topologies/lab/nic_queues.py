"""Sets the size of the queues of the hosts' NICs where an experiment has ``nic_queue_bytes``."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator, Sequence
from typing import Protocol

from host_reporter.nic.tree import HANDLE, OTHER_LEAF, leaf, other_queue_bytes, queue_bytes, queue_handle
from topologies.experiments.experiment import Experiment
from topologies.limits import OTHER_FLOOR


class Hosts(Protocol):
    """The part of an emulation that is needed here."""

    @property
    def hosts(self) -> Sequence[str]:
        """The hosts' names."""

    def run(self, host: str | None, command: Sequence[str], *, timeout: float = 60.0) -> str:
        """Run a command on a host. Raises subprocess.CalledProcessError."""


@contextlib.contextmanager
def as_wanted(emulation: Hosts, experiment: Experiment) -> Iterator[None]:
    """Inside the context the first class and all other traffic have queues of the experiment's size."""
    if experiment.nic_queue_bytes is None:
        yield
        return
    former = queue_bytes(experiment.link_bps), other_queue_bytes(experiment.link_bps * OTHER_FLOOR)
    _set(emulation, experiment.nic_queue_bytes, experiment.nic_queue_bytes)
    try:
        yield
    except BaseException:
        # The first error counts, not the errors that follow from it.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            _set(emulation, *former)
        raise
    _set(emulation, *former)


def _set(emulation: Hosts, first: int, other: int) -> None:
    for host in emulation.hosts:
        change = f"tc qdisc change dev {host}-eth0 parent {HANDLE}:"
        lines = [
            f"{change}{minor:x} handle {queue_handle(minor):x}: bfifo limit {limit}"
            for minor, limit in ((leaf(0), first), (OTHER_LEAF, other))
        ]
        emulation.run(host, ["sh", "-ec", "\n".join(lines)])
