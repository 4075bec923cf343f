"""The queues of the hosts' NICs in an arm: their size, and how many there are where no agent orders the NIC.

An experiment with ``nic_queue_bytes`` sizes the queues. Where an arm's NICs are ``hashed``, each has ``HASHED_QUEUES``
queues that share the link alike, and every TCP connection has one of them for life. Linux's default is such a set of
queues on an interface with several hardware queues (mq): they are served in turn, and a hash of the connection chooses.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from host_reporter.nic.tree import (
    HANDLE,
    OTHER_LEAF,
    QUANTUM,
    burst_bytes,
    leaf,
    other_queue_bytes,
    queue_bytes,
    queue_handle,
)
from topologies.experiments.experiment import Experiment
from topologies.limits import OTHER_FLOOR

HASHED_QUEUES = 8
"""A NIC that is hashed has so many queues, a power of two. One for each processor is usual."""

_FIRST_HASHED = 0x40
_HASHED_PREF = 1
"""This preference puts the filters before those by DSCP. TensorLights has it in other arms."""

_TINY_BPS = 1000
"""Each queue has this guaranteed rate, because HTB needs one. A queue borrows the rest of its rate."""


class Interface(Protocol):
    """An interface of a host."""

    @property
    def host(self) -> str:
        """The host's name."""

    @property
    def interface(self) -> str:
        """The interface's name on the host."""


class Hosts(Protocol):
    """The part of an emulation that is needed here."""

    def plugs(self) -> Sequence[Interface]:
        """The interfaces of all hosts."""

    def run(self, host: str | None, command: Sequence[str], *, timeout: float = 60.0) -> str:
        """Run a command on a host. Raises subprocess.CalledProcessError."""


@contextlib.contextmanager
def as_wanted(emulation: Hosts, experiment: Experiment, nic: str = "plan") -> Iterator[None]:
    """Inside the context NICs have the queues of the experiment and of an arm with this ``nic``."""
    with contextlib.ExitStack() as stack:
        if (wanted := experiment.nic_queue_bytes) is not None:
            former = queue_bytes(experiment.link_bps), other_queue_bytes(experiment.link_bps * OTHER_FLOOR)
            sized, restored = _sizes(wanted, wanted), _sizes(*former)
            stack.enter_context(_changed(emulation, sized, restored))
        if nic == "hashed":
            stack.enter_context(_changed(emulation, lambda name: _hashed(name, experiment), _unhashed))
        yield


@contextlib.contextmanager
def _changed(emulation: Hosts, change: Callable[[str], list[str]], back: Callable[[str], list[str]]) -> Iterator[None]:
    """Inside the context the interfaces are changed by commands of tc, which are given for an interface's name."""
    try:
        _run(emulation, change)
        yield
    except BaseException:
        # The first error counts, not the errors that follow from it.
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            _run(emulation, back)
        raise
    _run(emulation, back)


def _run(emulation: Hosts, commands: Callable[[str], list[str]]) -> None:
    for plug in emulation.plugs():
        emulation.run(plug.host, ["sh", "-ec", "\n".join(commands(plug.interface))])


def _sizes(first: int, other: int) -> Callable[[str], list[str]]:
    """Returns the commands that size the queues of the first class and of all other traffic."""

    def commands(name: str) -> list[str]:
        return [
            f"tc qdisc change dev {name} parent {HANDLE}:{minor:x} handle {queue_handle(minor):x}: bfifo limit {limit}"
            for minor, limit in ((leaf(0), first), (OTHER_LEAF, other))
        ]

    return commands


def _hashed(name: str, experiment: Experiment) -> list[str]:
    """Returns the commands that add the hashed queues to a host's tree, with a filter for each."""
    rate, limit = round(experiment.link_bps), experiment.nic_queue_bytes or queue_bytes(experiment.link_bps)
    burst = burst_bytes(experiment.link_bps)
    commands = []
    for number, minor in enumerate(_minors()):
        commands += [
            f"tc class add dev {name} parent {HANDLE}:1 classid {HANDLE}:{minor:x} htb rate {_TINY_BPS}bit "
            f"ceil {rate}bit prio 0 burst {burst} cburst {burst} quantum {QUANTUM}",
            f"tc qdisc add dev {name} parent {HANDLE}:{minor:x} handle {queue_handle(minor):x}: bfifo limit {limit}",
            f"tc filter add dev {name} parent {HANDLE}: protocol ip prio {_HASHED_PREF} u32 match u8 0x45 0xff at 0 "
            f"match u8 0x06 0xff at 9 {_hash(number)} flowid {HANDLE}:{minor:x}",
        ]
    return commands


def _hash(number: int) -> str:
    """Returns the match of a queue's connections, by the last bits of the port that they go to.

    A server's connections go to ports that its workers' kernels have chosen by chance. Linux prefers ports of one
    parity, so the last bit does not count.
    """
    return f"match u16 {number << 1:#06x} {(HASHED_QUEUES - 1) << 1:#06x} at 22"


def _unhashed(name: str) -> list[str]:
    """Returns the commands that remove the hashed queues; the filters go first, or their queues could not."""
    filters = f"tc filter del dev {name} parent {HANDLE}: protocol ip prio {_HASHED_PREF}"
    return [filters, *(f"tc class del dev {name} classid {HANDLE}:{minor:x}" for minor in _minors())]


def _minors() -> range:
    return range(_FIRST_HASHED, _FIRST_HASHED + HASHED_QUEUES)
