"""A simulator as plain as can be, to compare the engine with: no table, no heap, all rates anew at every event.

Rates grow together until a port is full (progressive filling), which is another way to max-min than the engine's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from controller.model import Demand, Direction, Host, Ordering, Port, Snapshot
from controller.policies.base import Policy
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.workloads.transfers import ring, tree

TINY = 1e-9
Path = tuple[object, ...]
Bands = Callable[[Mapping[str, float], "Reference"], Sequence[Sequence[str]]]


class Fixed(Policy):
    """Bands by a number that each job's id ends with: the same digit, the same band; a lower digit goes first."""

    name = "fixed"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        bands = fixed_bands([job.id for job in snapshot.jobs])
        return Ordering(self.name, tuple(map(tuple, bands)), {job.id: "fixed" for job in snapshot.jobs})


def fixed_bands(ids: Sequence[str]) -> list[list[str]]:
    return [[job for job in ids if job[-1] == digit] for digit in sorted({job[-1] for job in ids})]


def filling(paths: Sequence[Path], capacity: Mapping[object, float]) -> tuple[list[float], dict[object, float]]:
    """Max-min rates of flows on ``paths`` and what is left of ``capacity``."""
    left = dict(capacity)
    rates = [0.0] * len(paths)
    growing = [i for i, path in enumerate(paths) if all(left[port] > TINY for port in path)]
    while growing:
        flows = {port: sum(paths[i].count(port) for i in growing) for i in growing for port in paths[i]}
        step = min(left[port] / n for port, n in flows.items())
        for port, n in flows.items():
            left[port] = max(left[port] - step * n, 0.0)
        for i in growing:
            rates[i] += step
        growing = [i for i in growing if all(left[port] > TINY for port in paths[i])]
    return rates, left


class _Flow:
    def __init__(self, job: SimJob, lane: int, demand: Demand, path: Path, place: int = 0) -> None:
        self.job, self.lane, self.path, self.left, self.demand = job, lane, path, float(demand.bytes), demand
        self.place = place  # in the flows of a relay
        self.rate = 0.0


class _Lane:
    def __init__(self) -> None:
        self.step = 0
        self.done = 0
        self.until: float | None = None  # computing
        self.flows: list[_Flow] = []  # sending
        self.sent: list[int] = []  # chunks of each flow of a relay
        self.waits = True


class Reference:
    """Run a workload; ``ends`` and ``iteration_ends`` are the result."""

    def __init__(
        self,
        workload: Workload,
        bands: Callable[[Reference], Sequence[Sequence[str]]],
        *,
        capacity: Mapping[object, float] | None = None,
        path: Callable[[str, str], Path] | None = None,
        madd: bool = False,
    ) -> None:
        self.jobs = {job.id: job for job in workload.jobs}
        self.capacity = capacity if capacity is not None else hose(workload.hosts)
        self.path = path or (lambda src, dst: (Port(src, Direction.EGRESS), Port(dst, Direction.INGRESS)))
        self.bands = bands
        self.madd = madd
        self.now = 0.0
        self.lanes: dict[str, list[_Lane]] = {}
        self.iteration_ends: dict[str, list[float]] = {job: [] for job in self.jobs}
        self.ends: dict[str, float] = {}
        self.begun: dict[str, float] = {}
        self._order: list[list[str]] = []
        self._flowing: list[_Flow] = []
        self._ranked: list[list[str]] = []
        self._run()

    def flows(self) -> list[_Flow]:
        return [flow for lanes in self.lanes.values() for lane in lanes for flow in lane.flows]

    def _run(self) -> None:
        while len(self.ends) < len(self.jobs):
            self._arrive()
            if len(self.ends) == len(self.jobs):
                break
            self._make_rates()
            times = [self.now + flow.left / flow.rate for flow in self.flows() if flow.rate > 0]
            times += [lane.until for lanes in self.lanes.values() for lane in lanes if lane.until is not None]
            times += [when for job in self.jobs.values() if (when := self._begin(job)) is not None and when > self.now]
            then = min(times)
            for flow in self.flows():
                flow.left -= flow.rate * (then - self.now)
            self.now = then
            for job in list(self.lanes):
                for lane in self.lanes[job]:
                    self._go_on(self.jobs[job], lane)

    def _begin(self, job: SimJob) -> float | None:
        """When a job that has not begun may begin; None: not known yet, or it has."""
        if job.id in self.begun or any(other not in self.ends for other in job.after):
            return None
        return max([job.arrival, *(self.ends[other] for other in job.after)])

    def _arrive(self) -> None:
        while True:
            new = [
                job for job in self.jobs.values() if (when := self._begin(job)) is not None and when <= self.now + TINY
            ]
            for job in new:
                self.begun[job.id] = self._begin(job)
                self.lanes[job.id] = [_Lane() for _ in job.lanes]
            if new or self._order_is_old:
                self._order = [list(band) for band in self.bands(self)]
                self._order_is_old = False
            for job in new:
                self._wake(job)
            if not new:
                return

    _order_is_old = True

    def _wake(self, job: SimJob) -> None:
        moved = True
        while moved and job.id in self.lanes:
            moved = False
            least = min(lane.done for lane in self.lanes[job.id])
            for lane in self.lanes[job.id]:
                slack = job.staleness if job.staleness is not None else float("inf")
                if lane.waits and lane.done < job.iterations and lane.done - least <= slack:
                    lane.waits = False
                    self._begin_step(job, lane)
                    moved = True
                    break

    def _begin_step(self, job: SimJob, lane: _Lane) -> None:
        number = self.lanes[job.id].index(lane)
        while lane.step < len(job.lanes[number]):
            step = job.lanes[number][lane.step]
            if isinstance(step, Compute) and step.seconds > 0:
                lane.until = self.now + step.seconds
                return
            if isinstance(step, Transfer):
                if step.after:
                    lane.sent = [0 if flow.bytes > 0 else step.chunks for flow in step.flows]
                    self._pass_on(job, lane, step)
                else:
                    lane.flows = [_Flow(job, number, d, self.path(d.src, d.dst)) for d in step.flows if d.bytes > 0]
                if lane.flows:
                    return
            lane.step += 1
        lane.step = 0
        lane.done += 1
        lane.waits = True
        least = min(other.done for other in self.lanes[job.id])
        ends = self.iteration_ends[job.id]
        ends += [self.now] * (least - len(ends))
        if least == job.iterations:
            self.ends[job.id] = self.now
            del self.lanes[job.id]
            self._order_is_old = True

    def _pass_on(self, job: SimJob, lane: _Lane, relay: Transfer) -> None:
        """Let each flow of a relay that sends nothing send its next chunk, if it has what it passes on."""
        number = self.lanes[job.id].index(lane)
        busy = {flow.place for flow in lane.flows}
        for place, (demand, after) in enumerate(zip(relay.flows, relay.after, strict=True)):
            sent = lane.sent[place]
            if place in busy or sent == relay.chunks or any(lane.sent[i] < sent - relay.lag + 1 for i in after):
                continue
            chunk = Demand(demand.src, demand.dst, demand.bytes / relay.chunks)
            lane.flows.append(_Flow(job, number, chunk, self.path(demand.src, demand.dst), place))

    def _go_on(self, job: SimJob, lane: _Lane) -> None:
        if lane.until is not None and lane.until <= self.now + TINY:
            lane.until = None
        elif lane.flows:
            ended = [flow for flow in lane.flows if flow.left <= TINY * max(flow.rate, 1.0)]
            lane.flows = [flow for flow in lane.flows if flow not in ended]
            step = job.lanes[self.lanes[job.id].index(lane)][lane.step]
            if isinstance(step, Transfer) and step.after:
                for flow in ended:
                    lane.sent[flow.place] += 1
                self._pass_on(job, lane, step)
            if lane.flows:
                return
        else:
            return
        lane.step += 1
        self._begin_step(job, lane)
        self._wake(job)

    def _make_rates(self) -> None:
        """MADD's rates follow from what flows have left, but are made anew only where flows come or go."""
        flows, order = self.flows(), [list(band) for band in self._order]
        if not self.madd or flows != self._flowing or order != self._ranked:
            self._rates()
        self._flowing, self._ranked = flows, order

    def _rates(self) -> None:
        left: Mapping[object, float] = self.capacity
        if self.madd:
            self._madd(dict(left))
            return
        for band in self._order:
            flows = [flow for flow in self.flows() if flow.job.id in band]
            rates, left = filling([flow.path for flow in flows], left)
            for flow, rate in zip(flows, rates, strict=True):
                flow.rate = rate

    def _madd(self, left: dict[object, float]) -> None:
        for band in self._order:
            flows = []
            for job in band:
                for lane in range(len(self.jobs[job].lanes)):
                    coflow = [flow for flow in self.flows() if flow.job.id == job and flow.lane == lane]
                    shut = any(left[port] <= TINY for flow in coflow for port in flow.path)
                    for flow in coflow:
                        flow.rate = 0.0
                    flows += [] if shut else coflow
            load = {port: sum(f.left * f.path.count(port) for f in flows) for f in flows for port in f.path}
            slowest = max((load[port] / left[port] for port in load), default=0.0)
            for flow in flows:
                flow.rate = flow.left / slowest if slowest else 0.0
                for port in flow.path:
                    left[port] = max(left[port] - flow.rate, 0.0)
        for band in self._order:
            flows = [flow for flow in self.flows() if flow.job.id in band]
            more, left = filling([flow.path for flow in flows], left)
            for flow, rate in zip(flows, more, strict=True):
                flow.rate += rate


def hose(hosts: Mapping[str, Host]) -> dict[object, float]:
    return {
        Port(name, direction): host.rate_bps(direction) / 8 for name, host in hosts.items() for direction in Direction
    }


def random_workload(seed: int, *, coflows: bool = False, relays: bool = False) -> Workload:
    """A small workload; ``coflows``: jobs of one iteration and one transfer; ``relays``: in some hosts pass on."""
    random = Random(seed)
    names = [f"h{i}" for i in range(random.randint(2, 5))]
    hosts = {name: Host(name, 8 * random.choice([1, 1, 2, 4]), 8 * random.choice([1, 1, 2, 4])) for name in names}

    def transfer() -> Transfer:
        sizes = [1, 1, 2, 3, 5] if coflows else [0, 1, 1, 2, 3, 5]
        if relays and random.random() < 0.5:
            among = random.sample(names, random.randint(2, len(names)))
            size = random.choice(sizes)
            return random.choice([ring(among, size), tree(among, size), chain()])
        return Transfer(
            tuple(
                Demand(random.choice(names), random.choice(names), random.choice(sizes))
                for _ in range(random.randint(1, 6))
            )
        )

    def chain() -> Transfer:
        """Flows of any size between any hosts, each after two of those before it at most."""
        flows = [Demand(random.choice(names), random.choice(names), random.choice([0, 1, 2, 3])) for _ in range(4)]
        after = tuple(tuple(random.sample(range(place), random.randint(0, min(place, 2)))) for place in range(4))
        return Transfer(tuple(flows), after=after, chunks=random.randint(1, 4), lag=random.randint(0, 2))

    def lane() -> tuple[Compute | Transfer, ...]:
        if coflows:
            return (transfer(),)
        steps = [transfer() if random.random() < 0.6 else Compute(random.choice([0, 0.5, 1, 2])) for _ in range(3)]
        return tuple(steps[: random.randint(1, 3)])

    jobs = []
    for i in range(random.randint(1, 6)):
        jobs.append(
            SimJob(
                id=f"j{i}-{random.randint(0, 3)}",
                lanes=tuple(lane() for _ in range(1 if coflows else random.randint(1, 3))),
                arrival=random.choice([0, 0, 0, 1, 2.5, 4]),
                iterations=1 if coflows else random.randint(1, 4),
                staleness=random.choice([0, 0, 1, 2, None]),
                after=(jobs[0].id,) if jobs and random.random() < 0.15 else (),
            )
        )
    return Workload("random", hosts, tuple(jobs), seed)
