"""Measures how much an arm uses of the machine's processors and of the emulated links."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from controller.model import BITS_PER_BYTE

if TYPE_CHECKING:
    from topologies.emulation import Emulation

_RECEIVED, _SENT = 0, 8
"""Columns of the byte counters in a line of /proc/PID/net/dev, after the interface's name."""


SAMPLE_SECONDS = 1.0
"""A sample is of so many seconds at least. The authors of TensorLights took one a second, too [known]."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Shares of a host's link, out of it and into it, and their variances over samples of about a second.

    ``interface`` is the interface's name on the host.
    """

    host: str
    egress_share: float
    ingress_share: float
    interface: str = ""
    egress_variance: float = 0.0
    ingress_variance: float = 0.0


class MeteredLink(NamedTuple):
    """An interface of a host, and a process in the host's network."""

    host: str
    interface: str
    pid: int


def links_of(emulation: Emulation) -> tuple[MeteredLink, ...]:
    """Returns the links of all hosts of a network."""
    return tuple(MeteredLink(plug.host, plug.interface, emulation.pid(plug.host)) for plug in emulation.plugs())


@dataclass(frozen=True, slots=True)
class Use:
    """The used shares of all processors' time and of every host's link.

    ``busy_variance`` is that of the processors' share over samples of about a second.
    """

    busy_share: float
    links: tuple[LinkUse, ...]
    busy_variance: float = 0.0


class _Variance:
    """The variance of values of which none is kept. B. P. Welford, Technometrics 4(3), 1962."""

    def __init__(self) -> None:
        self._count = 0
        self._mean = self._squares = 0.0

    def add(self, value: float) -> None:
        """Take in a value."""
        self._count += 1
        deviation = value - self._mean
        self._mean += deviation / self._count
        self._squares += deviation * (value - self._mean)

    @property
    def value(self) -> float:
        """The variance of the values so far, 0 where there are none."""
        return self._squares / self._count if self._count else 0.0


class _Counts(NamedTuple):
    """What the kernel has counted at a moment: the processors' idle and total time, bytes received and sent by link."""

    moment: float
    cpu: tuple[int, int]
    links: list[tuple[int, int]]


class _Shares(NamedTuple):
    """The used shares between two moments: of the processors, and of each link out and in."""

    busy: float
    links: list[tuple[float, float]]


class Meter:
    """Measures the ``links``, which are those of hosts' interfaces, from its creation on. Raises OSError.

    Where ``sample`` is called again and again, variances are known, too.
    """

    def __init__(
        self,
        links: Iterable[MeteredLink],
        link_bps: float,
        proc: Path = Path("/proc"),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._metered = tuple(links)
        self._link_bps = link_bps
        self._proc = proc
        self._first = self._last = self._counts()
        self._busy = _Variance()
        self._of_links = [(_Variance(), _Variance()) for _ in self._metered]

    def sample(self) -> None:
        """Take a sample, if the last one was SAMPLE_SECONDS ago. Raises OSError."""
        if self._clock() - self._last.moment < SAMPLE_SECONDS:
            return
        before, self._last = self._last, self._counts()
        shares = self._shares(before, self._last)
        self._busy.add(shares.busy)
        for variances, link in zip(self._of_links, shares.links, strict=True):
            for variance, share in zip(variances, link, strict=True):
                variance.add(share)

    def use(self) -> Use:
        """Return what was used so far. Raises OSError."""
        shares = self._shares(self._first, self._counts())
        links = [
            LinkUse(metered.host, egress, ingress, metered.interface, egress_variance.value, ingress_variance.value)
            for metered, (egress, ingress), (egress_variance, ingress_variance) in zip(
                self._metered, shares.links, self._of_links, strict=True
            )
        ]
        return Use(shares.busy, tuple(links), self._busy.value)

    def _counts(self) -> _Counts:
        return _Counts(self._clock(), self._read_cpu(), self._read_links())

    def _shares(self, before: _Counts, after: _Counts) -> _Shares:
        idle, total = (now - then for now, then in zip(after.cpu, before.cpu, strict=True))
        full = self._link_bps / BITS_PER_BYTE * max(after.moment - before.moment, 1e-9)
        links = [
            ((sent - sent_before) / full, (received - received_before) / full)
            for (received_before, sent_before), (received, sent) in zip(before.links, after.links, strict=True)
        ]
        return _Shares(1.0 - idle / total if total else 0.0, links)

    def _read_cpu(self) -> tuple[int, int]:
        """Return the idle and the total time of the processors."""
        numbers = [int(word) for word in (self._proc / "stat").read_text().splitlines()[0].split()[1:9]]
        return numbers[3] + numbers[4], sum(numbers)

    def _read_links(self) -> list[tuple[int, int]]:
        """Return the bytes that each link has received and sent."""
        return [_counted(self._proc / str(link.pid) / "net" / "dev", link.interface) for link in self._metered]


def _counted(path: Path, interface: str) -> tuple[int, int]:
    for line in path.read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            counts = numbers.split()
            return int(counts[_RECEIVED]), int(counts[_SENT])
    raise FileNotFoundError(f"{path} has no interface {interface}")
