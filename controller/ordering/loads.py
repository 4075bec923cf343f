"""The loads of jobs at ports, as arrays, which make ordering, bounds and classes fast.

Ports have numbers: host i of the mapping of hosts has port 2 i for its egress and 2 i + 1 for its ingress. The links of
the routes between the hosts follow, if there are any, so that links are treated as ports. The sum of a demand at each
port is remembered as long as the demand is the same object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import is_

import numpy as np
from numpy.typing import NDArray

from controller.memo import Memo
from controller.model import BITS_PER_BYTE, Demand, Direction, Flow, Host, Job, Listeners, Port, Routes, Snapshot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_REMEMBERED_JOBS = 32768
_FEW = 16
"""Add up over all ports if there are at most this many for each end of a demand; else sorting the ends is faster."""


@dataclass(frozen=True, slots=True, eq=False)
class LoadMatrix:
    """The seconds that each job needs at each port: a sparse row for each job, without repeated ports or zero loads.

    Row j is ``port[start[j]:start[j + 1]]`` and ``seconds`` likewise; ``ports`` is the number of columns.
    """

    start: Ints
    port: Ints
    seconds: Floats
    ports: int

    @property
    def jobs(self) -> int:
        """Returns the number of rows."""
        return len(self.start) - 1

    def rows(self, jobs: Ints) -> LoadMatrix:
        """Returns the matrix of the given jobs, in the given order."""
        counts = np.diff(self.start)[jobs]
        start = np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(counts)))
        entry = np.arange(start[-1]) + np.repeat(self.start[:-1][jobs] - start[:-1], counts)
        return LoadMatrix(start, self.port[entry], self.seconds[entry], self.ports)

    def row_of_entry(self) -> Ints:
        """Returns the job of each entry."""
        return np.repeat(np.arange(self.jobs), np.diff(self.start))

    def bottlenecks(self) -> Floats:
        """Returns the seconds of each job at its busiest port; 0 without load. Shape (jobs,)."""
        busiest = np.zeros(self.jobs)
        loaded = np.diff(self.start) > 0
        if loaded.any():
            busiest[loaded] = np.maximum.reduceat(self.seconds, self.start[:-1][loaded])
        return busiest

    def times(self, factor: Floats) -> LoadMatrix:
        """Returns each row times a factor of 0 or more, without the entries that become 0."""
        seconds = self.seconds * np.repeat(factor, np.diff(self.start))
        keep = seconds > 0
        if keep.all():
            return LoadMatrix(self.start, self.port, seconds, self.ports)
        before = np.concatenate(([0], np.cumsum(keep)))
        return LoadMatrix(before[self.start].astype(np.int64), self.port[keep], seconds[keep], self.ports)

    def to_array(self) -> Floats:
        """Returns all loads as an array (jobs, ports)."""
        array = np.zeros((self.jobs, self.ports))
        array[self.row_of_entry(), self.port] = self.seconds
        return array

    @classmethod
    def of(cls, loads: Sequence[Mapping[Port, float]]) -> LoadMatrix:
        """Returns the matrix of one mapping for each job; ports are numbered as their loads above 0 first appear."""
        number: dict[Port, int] = {}
        rows = [[(name, value) for name, value in load.items() if value > 0] for load in loads]
        port = [number.setdefault(name, len(number)) for row in rows for name, _ in row]
        seconds = np.array([value for row in rows for _, value in row], dtype=float)
        start = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=start[1:])
        return cls(start, np.array(port, dtype=np.int64), seconds, len(number))

    @classmethod
    def dense(cls, seconds: Floats) -> LoadMatrix:
        """Returns the matrix of an array (jobs, ports) of numbers of 0 or more."""
        row, port = np.nonzero(seconds)
        start = np.searchsorted(row, np.arange(len(seconds) + 1))
        return cls(start.astype(np.int64), port.astype(np.int64), seconds[row, port], seconds.shape[1])


class PortNumbers:
    """The numbers of the ports of hosts and of the links between them, and how many seconds a byte takes at each."""

    def __init__(self, hosts: Mapping[str, Host], routes: Routes | None = None) -> None:
        self.hosts = hosts
        self.items = tuple(hosts.items())
        self.routes = routes
        self.host = {name: i for i, name in enumerate(hosts)}
        rates = [rate for host in hosts.values() for rate in (host.egress_bps, host.ingress_bps)]
        rates += [rate for _, rate in routes.links] if routes is not None else []
        self.seconds_a_byte = BITS_PER_BYTE / np.array(rates, dtype=float)
        self.demands: Memo[tuple[Demand, ...], tuple[Ints, Floats]] = Memo(_REMEMBERED_JOBS)
        self.flows: Memo[tuple[Flow, ...], tuple[Ints, Ints]] = Memo(_REMEMBERED_JOBS)
        self.listeners: Memo[Listeners, Ints] = Memo(_REMEMBERED_JOBS)
        self.latest: tuple[list[tuple[Demand, ...]], LoadMatrix] | None = None

    def __len__(self) -> int:
        return len(self.seconds_a_byte)

    def port(self, number: int) -> Port:
        """Returns the port with a number."""
        if self.routes is not None and number >= 2 * len(self.host):
            return self.routes.links[number - 2 * len(self.host)][0]
        return Port(self.items[number // 2][0], Direction.INGRESS if number % 2 else Direction.EGRESS)

    def bytes_of(self, job: Job) -> tuple[Ints, Floats]:
        """Returns the ports that an iteration of a job loads, ascending, and its bytes there.

        Raises KeyError for an unknown host.
        """
        return self.demands.get(job.demand, lambda: self._add_up(job.demand))

    def used_by(self, job: Job) -> Ints:
        """Returns the ports that a job's demand and its traffic cross; traffic of an unknown host is left out."""
        used = self._with(job.flows, self.bytes_of(job)[0])
        for listeners in (job.listeners, job.udp_listeners):
            if listeners.ends:
                used = np.union1d(used, self._used_by_listeners(listeners))
        return self._with(job.found, used)

    def _used_by_listeners(self, listeners: Listeners) -> Ints:
        return self.listeners.get(listeners, lambda: self._crossed_to_listeners(listeners))

    def _with(self, flows: tuple[Flow, ...], loaded: Ints) -> Ints:
        """Returns the loaded ports and those that flows cross."""
        if not flows:
            return loaded
        known, used = self.flows.get(flows, lambda: (loaded, self._crossed(flows, loaded)))
        return used if known is loaded else self._crossed(flows, loaded)

    def _add_up(self, demand: tuple[Demand, ...]) -> tuple[Ints, Floats]:
        host = self.host
        sources, targets, amounts = zip(*demand, strict=True) if demand else ((), (), ())
        number, count = host.__getitem__, len(demand)
        ends = np.fromiter(map(number, chain(sources, targets)), np.int64, 2 * count)
        ports = 2 * ends
        ports[count:] += 1
        sizes = np.array(amounts * 2, dtype=float)
        if self.routes is not None:
            crossed = self.routes.crossed
            links = [(link, d.bytes) for d in demand for link in crossed(d.src, d.dst)]
            ports = np.concatenate((ports, 2 * len(host) + np.array([link for link, _ in links], dtype=np.int64)))
            sizes = np.concatenate((sizes, np.array([size for _, size in links], dtype=float)))
        if len(self) <= _FEW * len(ports):
            total = summed(ports, sizes, len(self))
            port = np.flatnonzero(total > 0)
            return port, total[port]
        port, where = np.unique(ports, return_inverse=True)
        total = summed(where.reshape(-1), sizes, len(port))
        return port[total > 0], total[total > 0]

    def _crossed(self, flows: tuple[Flow, ...], loaded: Ints) -> Ints:
        host = self.host
        ports = set(loaded.tolist())
        ports |= {2 * host[flow.src] for flow in flows if flow.src in host}
        ports |= {2 * host[flow.dst] + 1 for flow in flows if flow.dst in host}
        if self.routes is not None:
            pairs = {(flow.src, flow.dst) for flow in flows if flow.src in host and flow.dst in host}
            ports.update(2 * len(host) + link for src, dst in pairs for link in self.routes.crossed(src, dst))
        return np.array(sorted(ports), dtype=np.int64)

    def _crossed_to_listeners(self, listeners: Listeners) -> Ints:
        """Returns the ports that packets cross between listening ports and the job's hosts, in both directions."""
        hosts = [name for name in listeners.among if name in self.host]
        ports = {2 * self.host[name] + direction for name in hosts for direction in (0, 1)}
        if self.routes is not None:
            crossed, site = self.routes.crossed, self.routes.site
            listening = {name for name, _ in listeners.ends if name in self.host}
            # One host stands for all hosts at its switch; else the number of pairs would be quadratic.
            for sources, targets in ((hosts, listening), (listening, hosts)):
                host_by_site = {site(name): name for name in sources}
                links = {
                    link for src in host_by_site.values() for dst in targets if src != dst for link in crossed(src, dst)
                }
                ports.update(2 * len(self.host) + link for link in links)
        return np.array(sorted(ports), dtype=np.int64)


def summed(position: Ints, amount: Floats, count: int) -> Floats:
    """Returns the sum of the amounts at each position 0..``count`` - 1. Shape (count,)."""
    total: Floats = np.bincount(position, amount, count).astype(float, copy=False)
    return total


_numbers: list[PortNumbers] = []


def port_numbers(hosts: Mapping[str, Host], routes: Routes | None = None) -> PortNumbers:
    """Returns the port numbers of ``hosts`` and ``routes``: the same object for equal hosts and the same routes."""
    # Identity comes first, because comparing a thousand hosts takes longer than the rest of this function.
    for known in tuple(_numbers):
        if known.routes is routes and known.hosts is hosts and len(known.items) == len(hosts):
            return known
    items = tuple(hosts.items())
    for known in tuple(_numbers):
        if known.routes is routes and known.items == items:
            return known
    numbers = PortNumbers(hosts, routes)
    # Several are kept, so that simulations of different networks can run side by side.
    _numbers.insert(0, numbers)
    del _numbers[4:]
    return numbers


def busiest_port(job: Job, snapshot: Snapshot) -> tuple[Port | None, float]:
    """Returns the port that an iteration of a job loads for longest, and the seconds of that load.

    Of several such ports it is the first by name. Returns (None, 0) without demand. Raises KeyError for a host that is
    not in the snapshot.
    """
    numbers = port_numbers(snapshot.hosts, snapshot.routes)
    ports, amounts = numbers.bytes_of(job)
    if not len(ports):
        return None, 0.0
    seconds = amounts * numbers.seconds_a_byte[ports]
    busiest = ports[seconds == seconds.max()].tolist()
    return min(map(numbers.port, busiest)), float(seconds.max())


def load_matrix(snapshot: Snapshot) -> LoadMatrix:
    """Returns the loads of one iteration of every job of a snapshot, in its order.

    The result is remembered until jobs come or go; do not write to it. Raises KeyError for a host that is not in the
    snapshot.
    """
    numbers = port_numbers(snapshot.hosts, snapshot.routes)
    demands = [job.demand for job in snapshot.jobs]
    known = numbers.latest
    if known is not None and len(known[0]) == len(demands) and all(map(is_, known[0], demands)):
        return known[1]
    matrix = _load_matrix(numbers, [numbers.bytes_of(job) for job in snapshot.jobs])
    numbers.latest = demands, matrix
    return matrix


def _load_matrix(numbers: PortNumbers, rows: Sequence[tuple[Ints, Floats]]) -> LoadMatrix:
    start = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(port) for port, _ in rows], out=start[1:])
    if not rows:
        return LoadMatrix(start, np.zeros(0, dtype=np.int64), np.zeros(0), len(numbers))
    port = np.concatenate([port for port, _ in rows])
    seconds = np.concatenate([amount for _, amount in rows]) * numbers.seconds_a_byte[port]
    return LoadMatrix(start, port, seconds, len(numbers))


def loads_left(snapshot: Snapshot, one_iteration: LoadMatrix) -> LoadMatrix:
    """Returns the loads of all iterations that the jobs have left."""
    return one_iteration.times(np.array([job.iterations_left for job in snapshot.jobs], dtype=float))
