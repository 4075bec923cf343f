"""From jobs to the flat tables of the compiled loops (``kernel.state``), which grow when jobs are added."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.errors import InputError
from simulator.jobs import Await, Compute, SimJob, Transfer
from simulator.kernel.state import (
    BUNDLE,
    CELL,
    DENSE,
    F8,
    GROUP,
    I4,
    I8,
    JOB,
    LANE,
    LINK,
    MORE,
    NUMBERS,
    STEP,
    Rows,
    State,
)
from simulator.network import Hose, Network

_GRID_HOSTS = 1500
"""Networks of more hosts have no grid of all pairs: it would take too much memory, and be nearly empty."""
_ALL_PAIRS = 300
"""In networks of at most so many hosts every pair has its path from the start."""
_ROWS = 100_000
"""The loops note so many stretches of watched links before Python collects them."""


class Ends(NamedTuple):
    """The hosts that each path is from and to, by number."""

    src: I4 = np.zeros(0, dtype=np.int32)
    dst: I4 = np.zeros(0, dtype=np.int32)

    def followed_by(self, pairs: Sequence[int], hosts: int) -> Ends:
        """These, and those of more paths, by their pairs of hosts, each source x hosts + target."""
        more = np.divmod(np.array(pairs, dtype=np.int64), hosts)
        return Ends(*(np.concatenate(both).astype(np.int32) for both in zip(self, more, strict=True)))


class Tables:
    """All jobs so far, by number, and the ``state`` that holds them. ``add`` replaces ``state``."""

    def __init__(
        self, network: Network, hosts: Iterable[str], *, quantum: float = 0.0, watched: Sequence[int] = ()
    ) -> None:
        self.network = network
        self.jobs: list[SimJob] = []
        self.number: dict[str, int] = {}
        self.hosts = tuple(hosts)
        self.ends = Ends()
        self._host_number = {host: i for i, host in enumerate(self.hosts)}
        self._path_of: dict[int, int] = {}
        self._all_pairs = isinstance(network, Hose) and len(self.hosts) <= _ALL_PAIRS
        if self._all_pairs:
            # Numbered in the order in which the bundles of a step lie.
            self._path_of = {pair: pair for pair in range(len(self.hosts) ** 2)}
        links = len(network.ports)
        grid = links // 2 if isinstance(network, Hose) and links <= 2 * _GRID_HOSTS else 0
        self.state = _empty(links, network.hops, network.capacity, quantum=quantum, watched=watched, grid=grid)

    def add(self, jobs: Sequence[SimJob]) -> range:
        """Append jobs; their numbers. Raises InputError for what cannot be run, and for an id that is there already."""
        part = _NewRows(self.state)
        first = len(self.jobs)
        for job in jobs:
            check(job)
            if job.id in self.number:
                raise InputError(f"job {job.id}: two jobs have this id")
            self.number[job.id] = len(self.jobs)
            self.jobs.append(job)
            part.add(job, self._bundles)
        self.state = self._with_paths(part.merged())
        return range(first, len(self.jobs))

    def _with_paths(self, state: State) -> State:
        """The paths that are new, and room for the longest."""
        known = len(state.paths)
        if len(self._path_of) == known:
            return state
        new = list(self._path_of)[known:]
        paths = [
            self.network.path(self.hosts[src], self.hosts[dst])
            for src, dst in (divmod(pair, len(self.hosts)) for pair in new)
        ]
        hops = max(state.paths.shape[1], *map(len, paths))
        if hops > state.paths.shape[1]:
            state = _longer_paths(state, hops)
        rows = np.full((len(self._path_of), hops), -1, dtype=np.int32)
        rows[:known] = state.paths
        for number, path in enumerate(paths, start=known):
            rows[number, : len(path)] = path
        self.ends = self.ends.followed_by(new, len(self.hosts))
        return state._replace(paths=rows)

    def make_room(self, groups: int) -> None:
        """Let at least so many groups have bundles at once."""
        have = len(self.state.group)
        if groups > have:
            self.state = _more_groups(self.state, max(groups, 2 * have))

    def _bundles(self, job: str, transfer: Transfer) -> Rows:
        """Equal flows of a transfer together, by path, then bytes; of a relay each flow, in the given order."""
        flows = transfer.flows
        host, n = self._host_number, len(flows)
        sources, targets, amounts = zip(*flows, strict=True) if flows else ((), (), ())
        try:
            src = np.fromiter(map(host.__getitem__, sources), np.int64, n)
            dst = np.fromiter(map(host.__getitem__, targets), np.int64, n)
        except KeyError as error:
            raise InputError(f"job {job}: a flow names host {error.args[0]}, but there is no such host") from None
        sizes = np.array(amounts, dtype=np.float64)
        if not ((sizes >= 0) & (sizes < np.inf)).all():
            bad = flows[int(np.flatnonzero(~((sizes >= 0) & (sizes < np.inf)))[0])]
            raise InputError(
                f"job {job}: {bad.bytes} bytes from {bad.src} to {bad.dst}; it must be a number of 0 or more"
            )
        pairs = src * len(host) + dst
        if transfer.after:
            rows = np.zeros(n, dtype=BUNDLE)
            rows["path"], rows["flows"], rows["left"] = self._paths(pairs), 1.0, sizes
            return rows
        order = np.lexsort((sizes, pairs))
        pairs, sizes = pairs[order], sizes[order]
        begins = np.flatnonzero(np.r_[True, (np.diff(pairs) != 0) | (np.diff(sizes) != 0)]) if n else order
        rows = np.zeros(len(begins), dtype=BUNDLE)
        rows["path"] = self._paths(pairs[begins])
        rows["flows"], rows["left"] = np.diff(np.r_[begins, n]), sizes[begins]
        return rows

    def _paths(self, pairs: I8) -> I8 | list[int]:
        """The numbers of the paths of these pairs of hosts, each source x hosts + target."""
        if self._all_pairs:
            return pairs
        return [self._path_of.setdefault(pair, len(self._path_of)) for pair in pairs.tolist()]


def check(job: SimJob) -> None:
    """Raise InputError where a job cannot be run."""
    where = f"job {job.id}"
    if not 0 <= job.arrival < float("inf"):
        raise InputError(f"{where}: arrival is {job.arrival}; it must be a number of 0 or more")
    if not 0 < job.weight < float("inf"):
        raise InputError(f"{where}: weight is {job.weight}; it must be a number above 0")
    if job.iterations < 1:
        raise InputError(f"{where}: iterations is {job.iterations}; it must be at least 1")
    if job.staleness is not None and job.staleness < 0:
        raise InputError(f"{where}: staleness is {job.staleness}; it must be 0 or more, or none for no limit")
    if not job.lanes:
        raise InputError(f"{where}: it has no lanes; it must have at least one")
    check_curve(where, job)
    for step in (step for lane in job.lanes for step in lane):
        if isinstance(step, Transfer):
            _check_relay(where, step)
        if isinstance(step, Compute) and not 0 <= step.seconds < float("inf"):
            raise InputError(f"{where}: computes for {step.seconds} seconds; it must be a number of 0 or more")
        if isinstance(step, Await):
            if not 0 <= step.lane < len(job.lanes):
                raise InputError(f"{where}: a step waits for lane {step.lane}; there are 0 to {len(job.lanes) - 1}")
            if not 0 <= step.step < len(job.lanes[step.lane]) or step.lag < 0:
                raise InputError(f"{where}: a step waits for step {step.step} of lane {step.lane}, {step.lag} before")


def check_curve(where: str, job: SimJob) -> None:
    """Raise InputError where a job's curve is not as long as the job; ``where`` names the job in the error."""
    if job.curve and len(job.curve) != job.iterations:
        raise InputError(f"{where}: its curve has {len(job.curve)} points for {job.iterations} iterations")


def _check_relay(where: str, transfer: Transfer) -> None:
    if transfer.chunks < 1 or transfer.lag < 0:
        raise InputError(
            f"{where}: a relay has {transfer.chunks} chunks and a lag of {transfer.lag}; these must be at least 1 and 0"
        )
    if not transfer.after:
        if transfer.chunks > 1:
            raise InputError(f"{where}: a transfer has {transfer.chunks} chunks, but no flow that passes them on")
        return
    if len(transfer.after) != len(transfer.flows):
        raise InputError(
            f"{where}: a relay of {len(transfer.flows)} flows says of {len(transfer.after)} what they pass on"
        )
    for after in transfer.after:
        if len(after) > 2 or not all(0 <= place < len(transfer.flows) for place in after):
            raise InputError(f"{where}: a flow passes on those of {after}; it must be two of the relay's flows at most")
    if transfer.lag == 0:
        try:
            TopologicalSorter(dict(enumerate(transfer.after))).prepare()
        except CycleError:
            raise InputError(f"{where}: a relay's flows wait for each other; with a lag of 0 they must not") from None


class _NewRows:
    """New rows of every table, with numbers that go on from those of ``before``."""

    def __init__(self, before: State) -> None:
        self._before = before
        self._count = {name: len(getattr(before, name)) for name in ("bundle", "step", "turns", "lane", "job", "ends")}
        self._bundles: list[Rows] = []
        self._relays: list[tuple[int, Transfer]] = []
        self._steps: list[tuple[float, int, int, int, int, int, int, int, int]] = []
        self._lanes: list[tuple[int, int, int]] = []
        self._jobs: list[tuple[int, int, int, int, int, int]] = []
        self._curves: list[F8] = []

    def add(self, job: SimJob, bundles_of: Callable[[str, Transfer], Rows]) -> None:
        count = self._count
        first_lane = count["lane"]
        lane_begins = list(accumulate(map(len, job.lanes), initial=count["step"]))
        turns: dict[int, int] = {}
        gated = False
        for lane in job.lanes:
            first_step = count["step"]
            for step in lane:
                first = count["bundle"]
                seconds, gate, turn, relay = -1.0, (-1, 0, 0), (-1, 0), False
                if isinstance(step, Compute):
                    seconds = step.seconds
                elif isinstance(step, Transfer):
                    rows = bundles_of(job.id, step)
                    rows["lane"] = count["lane"]
                    self._bundles.append(rows)
                    relay = bool(step.after)
                    if relay:
                        self._relays.append((first, step))
                    count["bundle"] += len(rows)
                    if step.turn is not None:
                        turn = turns.setdefault(step.turn, count["turns"] + len(turns)), step.urgency
                else:
                    seconds, gated = 0.0, True
                    gate = first_lane + step.lane, lane_begins[step.lane] + step.step, step.lag
                self._steps.append((seconds, first, count["bundle"], *gate, *turn, int(relay)))
                count["step"] += 1
            self._lanes.append((count["job"], first_step, count["step"]))
            count["lane"] += 1
        slack = -1 if job.staleness is None else job.staleness
        self._jobs.append((first_lane, count["lane"], job.iterations, slack, count["ends"], int(gated)))
        count["turns"] += len(turns)
        sign = 1.0 if job.metric.direction == "max" else -1.0
        self._curves.append(sign * np.asarray(job.curve) if job.curve else np.full(job.iterations, np.nan))
        count["ends"] += job.iterations
        count["job"] += 1

    def merged(self) -> State:
        old, hops = self._before, self._before.paths.shape[1]
        bundle = np.concatenate((old.bundle, *self._bundles))
        more = _longer(old.more, len(bundle))
        # Nothing is sent yet of what is new.
        more["bytes"][len(old.more) :] = bundle["left"][len(old.more) :]
        for first, transfer in self._relays:
            _set_relay(more[first : first + len(transfer.flows)], first, transfer)
        step = _table(
            STEP, self._steps, "seconds", "first", "end", "gate", "gate_step", "lag", "turn", "urgency", "relay"
        )
        lane = _table(LANE, self._lanes, "job", "first", "end")
        lane["place"] = -1
        job = _table(JOB, self._jobs, "first", "end", "iterations", "slack", "ends", "gated")
        job["watch"] = np.nan
        job["group"] = -1
        job["served"] = 1
        lanes, jobs = len(old.lane) + len(lane), len(old.job) + len(job)
        return old._replace(
            bundle=bundle.view(np.recarray),
            more=more.view(np.recarray),
            chain=_longer(old.chain, len(bundle) * hops),
            active=_longer(old.active, len(bundle)),
            found=_longer(old.found, len(bundle)),
            on_link=_longer(old.on_link, len(bundle) * hops),
            step=np.concatenate((old.step, step)).view(np.recarray),
            turns=np.r_[old.turns, np.full(self._count["turns"] - len(old.turns), -1)].astype(np.int32),
            lane=np.concatenate((old.lane, lane)).view(np.recarray),
            job=np.concatenate((old.job, job)).view(np.recarray),
            curves=np.concatenate((old.curves, *self._curves)),
            ends=_longer(old.ends, self._count["ends"]),
            rate_on=_longer(old.rate_on.T, jobs).T.copy(),
            rate_since=_longer(old.rate_since.T, jobs).T.copy(),
            rate_seen=np.zeros(jobs),
            rows=np.zeros((_ROWS + 2 * len(old.watched) * jobs if len(old.watched) else 0, 5)),
            **{name: _longer(getattr(old, name), lanes) for name in ("heap", "touched", "ready", "met")},
            **{name: _longer(getattr(old, name), jobs) for name in ("ended", "crossed", "senders")},
        )


def _set_relay(more: Rows, first: int, transfer: Transfer) -> None:
    """Write into the rows of a relay's bundles, from number ``first`` on, whose chunks each passes on."""
    more["bytes"] /= transfer.chunks
    more["chunks"], more["lag"] = transfer.chunks, transfer.lag
    sources = np.full((len(more), 2), -1)
    for place, after in enumerate(transfer.after):
        sources[place, : len(after)] = [first + source for source in after]
    more["source"], more["other_source"] = sources.T


def _longer_paths(old: State, hops: int) -> State:
    """Room for paths of so many links: a place in ``chain`` and in its lists is bundle * hops + hop."""
    before = old.paths.shape[1]
    bundles = len(old.bundle)

    def moved(places: NDArray[Any]) -> NDArray[Any]:
        return np.where(places >= 0, places // before * hops + places % before, places).astype(np.int32)

    chain = np.zeros((bundles, hops, 2), dtype=np.int32)
    chain[:, :before] = moved(old.chain).reshape(bundles, before, 2)
    cell = old.cell.copy()
    cell["head"] = moved(cell["head"])
    num = old.num.copy()
    num[DENSE] = 0  # that is for paths of two links
    return old._replace(
        num=num,
        paths=np.pad(old.paths, ((0, 0), (0, hops - before)), constant_values=-1),
        chain=chain.reshape(-1, 2),
        cell=cell.view(np.recarray),
        on_link=np.zeros(bundles * hops, dtype=np.int32),
        grid=np.zeros((0, 0)),
    )


def _table(kind: np.dtype[Any], rows: Sequence[tuple[float, ...]], *names: str) -> Rows:
    table = np.zeros(len(rows), dtype=kind)
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        table[name] = column
    return table


def _longer(array: NDArray[Any], length: int) -> NDArray[Any]:
    grown = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    grown[: len(array)] = array
    return grown


def _empty(links: int, hops: int, capacity: F8, *, quantum: float, watched: Sequence[int], grid: int) -> State:
    link = np.zeros(links, dtype=LINK)
    link["capacity"] = capacity
    none = np.zeros(0, dtype=np.int32)
    num = np.zeros(NUMBERS, dtype=np.int64)
    num[DENSE] = grid
    tables = {"bundle": BUNDLE, "more": MORE, "step": STEP, "lane": LANE, "job": JOB}
    return _more_groups(
        State(
            num=num,
            clk=np.array([0.0, quantum]),
            link=link.view(np.recarray),
            paths=np.zeros((0, hops), dtype=np.int32),
            chain=np.zeros((0, 2), dtype=np.int32),
            ends=np.zeros(0),
            curves=np.zeros(0),
            turns=none,
            group=np.zeros(0, dtype=GROUP),
            seed=np.zeros((0, links), dtype=np.int32),
            cell=np.zeros((0, links), dtype=CELL),
            present=np.zeros((links, 0), dtype=np.int32),
            linked=np.zeros((0, links), dtype=np.int32),
            deltas=np.zeros(links, dtype=np.int32),
            links=np.zeros(links, dtype=np.int32),
            on_queue=np.zeros(links, dtype=np.int32),
            by_share=np.zeros(links, dtype=np.int32),
            grid=np.zeros((grid, grid)),
            wall=np.zeros((4, links)),
            watched=np.array(watched, dtype=np.int32),
            rate_on=np.zeros((len(watched), 0)),
            rate_since=np.zeros((len(watched), 0)),
            rate_seen=np.zeros(0),
            rows=np.zeros((0, 5)),
            **{name: np.zeros(0, dtype=kind).view(np.recarray) for name, kind in tables.items()},
            **dict.fromkeys(
                ("active", "heap", "touched", "ready", "met", "ended", "crossed", "senders", "found", "on_link"), none
            ),
        ),
        8,
    )


def _more_groups(old: State, groups: int) -> State:
    present = np.zeros((len(old.link), groups), dtype=np.int32)
    present[:, : old.present.shape[1]] = old.present
    cell = _longer(old.cell, groups)
    cell["place"][len(old.cell) :] = -1
    return old._replace(
        group=_longer(old.group, groups).view(np.recarray),
        seed=_longer(old.seed, groups),
        linked=_longer(old.linked, groups),
        cell=cell.view(np.recarray),
        present=present,
    )
