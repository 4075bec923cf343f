"""What TCP did on the hosts of an arm, by the kernel's own counters of each host's network namespace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TcpUse:
    """A host's segments sent, segments sent again, and retransmission timeouts.

    A ``spurious`` timeout is one after which an acknowledgement showed that nothing had been lost (F-RTO, RFC 5682).
    """

    host: str
    sent: int
    retransmitted: int
    timeouts: int
    spurious: int


class TcpMeter:
    """Measures TCP from its creation on. ``hosts`` gives a process in the network of each host. Raises OSError."""

    def __init__(self, hosts: Mapping[str, int], proc: Path = Path("/proc")) -> None:
        self._hosts = hosts
        self._proc = proc
        self._first = self._read()

    def use(self) -> tuple[TcpUse, ...]:
        """Returns what TCP has done so far, by host. Raises OSError."""
        return tuple(
            TcpUse(host, *(now - then for now, then in zip(after, before, strict=True)))
            for host, before, after in zip(self._hosts, self._first, self._read(), strict=True)
        )

    def _read(self) -> list[tuple[int, int, int, int]]:
        return [_counted(self._proc / str(pid) / "net") for pid in self._hosts.values()]


def _counted(folder: Path) -> tuple[int, int, int, int]:
    """Returns the counters in a process's folder ``net``."""
    sent, again = _pair(folder / "snmp", "Tcp", ("OutSegs", "RetransSegs"))
    timeouts, spurious = _pair(folder / "netstat", "TcpExt", ("TCPTimeouts", "TCPSpuriousRTOs"))
    return sent, again, timeouts, spurious


def _pair(path: Path, table: str, counters: tuple[str, str]) -> tuple[int, int]:
    """Returns two counters of a table, which has a line of names and a line of values. Raises OSError."""
    rows = [words for line in path.read_text().splitlines() if (words := line.split()) and words[0] == f"{table}:"]
    values = dict(zip(rows[0], rows[1], strict=False)) if len(rows) == 2 else {}
    if missing := [name for name in counters if name not in values]:
        raise FileNotFoundError(f"{path}: table {table} has no counter {missing[0]}")
    first, second = counters
    return int(values[first]), int(values[second])
