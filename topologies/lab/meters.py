"""Measures how much an arm uses of the machine's processors and of the emulated links."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from controller.model import BITS_PER_BYTE

_RECEIVED, _SENT = 0, 8
"""Columns of the byte counters in a line of /proc/PID/net/dev, after the interface's name."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """Shares of a host's link, out of it and into it."""

    host: str
    egress_share: float
    ingress_share: float


@dataclass(frozen=True, slots=True)
class Use:
    """The used shares of all processors' time and of every host's link."""

    busy_share: float
    links: tuple[LinkUse, ...]


class Meter:
    """Measures from its creation on. ``pids`` has for each host a process in its network. Raises OSError."""

    def __init__(
        self,
        pids: Mapping[str, int],
        link_bps: float,
        proc: Path = Path("/proc"),
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._pids = pids
        self._link_bps = link_bps
        self._proc = proc
        self._since = self._clock()
        self._cpu = self._read_cpu()
        self._links = self._read_links()

    def use(self) -> Use:
        """Return what was used so far."""
        idle, total = (now - then for now, then in zip(self._read_cpu(), self._cpu, strict=True))
        full = self._link_bps / BITS_PER_BYTE * max(self._clock() - self._since, 1e-9)
        links = [
            LinkUse(host, (sent - self._links[host][1]) / full, (received - self._links[host][0]) / full)
            for host, (received, sent) in self._read_links().items()
        ]
        return Use(1.0 - idle / total if total else 0.0, tuple(links))

    def _read_cpu(self) -> tuple[int, int]:
        """Return the idle and the total time of the processors."""
        numbers = [int(word) for word in (self._proc / "stat").read_text().splitlines()[0].split()[1:9]]
        return numbers[3] + numbers[4], sum(numbers)

    def _read_links(self) -> dict[str, tuple[int, int]]:
        """Return the bytes that each host's link has received and sent."""
        return {
            host: _counted(self._proc / str(pid) / "net" / "dev", f"{host}-eth0") for host, pid in self._pids.items()
        }


def _counted(path: Path, interface: str) -> tuple[int, int]:
    for line in path.read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == interface:
            counts = numbers.split()
            return int(counts[_RECEIVED]), int(counts[_SENT])
    raise FileNotFoundError(f"{path} has no interface {interface}")
