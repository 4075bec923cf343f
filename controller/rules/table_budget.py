"""Reduces the rules for discovered connections until they fit into the switches' tables. Pure.

Discovered connections become flows, and flows become rules. There are three steps, each with fewer rules than the one
before:

- *links* takes the discovered flows. Several flows of a job that share a port which no other job uses become one.
- *pairs* takes one flow for all packets from one host to another where only one job has flows between them. Traffic of
  no job then gets the job's class too, so this step is taken only where *links* does not fit.
- *marked* matches the DSCP alone, with O(classes) rules; hosts mark their jobs' packets.

The first step that fits into the budget is taken. A finer step comes back only when it would leave some room, and not
before some time has passed, so that connections that come and go do not change all rules again and again.

The rules of hosts with jobs (``places``) take what room is left. Where they do not fit, only those of hosts that share
a job are made, and then none. They come back in the same way.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cache, cached_property
from itertools import chain
from operator import is_
from typing import Generic, TypeVar

from controller.model import Flow, Job, Snapshot
from controller.rules.pairs.places import places
from controller.rules.sites import traffic_sites

BACK_SHARE = 0.8
"""Go back to a finer step only when it needs at most this share of the budget."""

BACK_SECONDS = 30.0
"""Stay at least this long on a coarser step before going back to a finer one."""


class Step(IntEnum):
    """How rules distinguish the discovered connections."""

    LINKS = 0
    PAIRS = 1
    MARKED = 2


class HostRules(IntEnum):
    """For which pairs of hosts there are rules that give their traffic a place."""

    WITH_JOBS = 0
    SHARING_JOBS = 1
    NONE = 2


_SOME_HOST_RULES = (HostRules.WITH_JOBS, HostRules.SHARING_JOBS)


DiscoveredFlows = tuple[tuple[Flow, ...], ...]
"""The discovered flows of each job of a snapshot."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A snapshot whose flows fit into the budget, and the step that was taken.

    ``needs`` is how many rules the jobs' flows would need in step *links*, at the switch that holds most of them.
    ``rules`` is the same number in this step; it is 0 where only the DSCP is matched. ``place_rules`` is how many rules
    the hosts with jobs need beside them. For which hosts these have room is in the snapshot; if not for all, it is how
    many are too many.
    """

    snapshot: Snapshot
    step: Step
    needs: int
    rules: int
    place_rules: int = 0


_Level = TypeVar("_Level", bound=IntEnum)


class _Choice(Generic[_Level]):
    """A level that was chosen, and when. Of levels the finest one is the least."""

    def __init__(self, level: _Level) -> None:
        self.level = level
        self._since = float("-inf")

    def choose(self, best: Callable[[float], _Level], budget: float, now: float) -> _Level:
        """Returns the ``best`` level for the budget. A finer one needs room to spare, and time at the coarser one."""
        wanted = best(budget)
        if wanted < self.level:
            wanted = self.level if now - self._since < BACK_SECONDS else min(best(BACK_SHARE * budget), self.level)
        if wanted is not self.level:
            self.level, self._since = wanted, now
        return self.level


class TableBudget:
    """Keeps the flows of snapshots within a number of rules for each switch. It remembers the step. Not thread-safe."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self._steps = _Choice(Step.LINKS)
        self._host_rules = _Choice(HostRules.WITH_JOBS)
        self._latest: _Reduced | None = None

    def fit(self, snapshot: Snapshot, now: float) -> Fitted:
        """Returns the snapshot with flows that fit. ``now`` is the time of a monotonic clock, in seconds."""
        if self._latest is None or not self._latest.is_of(snapshot):
            self._latest = _Reduced(snapshot)
        reduced = self._latest
        step = self._steps.choose(reduced.best, self.budget, now)
        chosen = reduced.links if step is Step.LINKS else reduced.pairs
        jobs = tuple(
            job if job.found is flows else replace(job, found=flows)
            for job, flows in zip(snapshot.jobs, chosen, strict=True)
        )
        # What is remembered of jobs is found again by the same object.
        jobs = snapshot.jobs if all(map(is_, jobs, snapshot.jobs)) else jobs
        fitted = replace(snapshot, jobs=jobs, degraded=step is Step.MARKED)
        by_step = {Step.LINKS: reduced.link_rules, Step.PAIRS: reduced.pair_rules if step is Step.PAIRS else 0}
        return self._with_hosts(Fitted(fitted, step, reduced.link_rules, by_step.get(step, 0)), now)

    def fit_marks(self, snapshot: Snapshot, now: float) -> Fitted:
        """Returns the snapshot for switches that look at marks in any case: only hosts with jobs need rules."""
        return self._with_hosts(Fitted(snapshot, Step.MARKED, 0, 0), now)

    def _with_hosts(self, flows: Fitted, now: float) -> Fitted:
        """Returns what is fitted with the word which rules of hosts have room beside those of the flows."""
        snapshot = flows.snapshot

        @cache
        def need(rules: HostRules) -> int:
            return place_rules(snapshot, between_jobs=rules is HostRules.WITH_JOBS)

        def best(budget: float) -> HostRules:
            fitting = (rules for rules in _SOME_HOST_RULES if flows.rules + need(rules) <= budget)
            return next(fitting, HostRules.NONE)

        match self._host_rules.choose(best, self.budget, now):
            case HostRules.WITH_JOBS:
                return replace(flows, place_rules=need(HostRules.WITH_JOBS))
            case HostRules.SHARING_JOBS:
                sharing = replace(snapshot, has_places_between_jobs=False)
                return replace(flows, snapshot=sharing, place_rules=need(HostRules.WITH_JOBS))
            case HostRules.NONE:
                none = replace(snapshot, has_places=False, has_places_between_jobs=False)
                return replace(flows, snapshot=none, place_rules=need(HostRules.SHARING_JOBS))


class _Reduced:
    """The reduced flows of one snapshot's jobs, and how many rules they need. Each is computed when first needed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        has_discovered = any(job.found for job in snapshot.jobs)
        self.links: DiscoveredFlows = (
            by_port(snapshot.jobs) if has_discovered else tuple(job.found for job in snapshot.jobs)
        )
        self.link_rules = self._rules(self.links) + sum(job.found_more for job in snapshot.jobs)

    def is_of(self, snapshot: Snapshot) -> bool:
        """Returns whether another snapshot has the same flows, on the same hosts and switches."""
        mine = self._snapshot
        return (
            len(mine.jobs) == len(snapshot.jobs)
            and mine.hosts == snapshot.hosts
            and mine.switches == snapshot.switches
            and all(
                job.id == other.id
                and job.flows is other.flows
                and job.listeners is other.listeners
                and job.udp_listeners is other.udp_listeners
                and job.found is other.found
                and job.found_more == other.found_more
                for job, other in zip(mine.jobs, snapshot.jobs, strict=True)
            )
        )

    def best(self, budget: float) -> Step:
        """Returns the finest step that fits."""
        if self.link_rules <= budget:
            return Step.LINKS
        return Step.PAIRS if self.pair_rules <= budget else Step.MARKED

    @cached_property
    def pairs(self) -> DiscoveredFlows:
        """Returns the flows with one for all packets from one host to another."""
        jobs = self._snapshot.jobs
        return by_pair([replace(job, found=flows) for job, flows in zip(jobs, self.links, strict=True)])

    @cached_property
    def pair_rules(self) -> int:
        """Returns how many rules ``pairs`` needs."""
        return self._rules(self.pairs)

    def _rules(self, discovered: DiscoveredFlows) -> int:
        """Returns how many rules the jobs' traffic needs at the switch that holds most of them."""
        snapshot = self._snapshot
        everywhere = 0
        at: Counter[int] = Counter()
        sites = traffic_sites(snapshot.hosts)
        for job, flows in zip(snapshot.jobs, discovered, strict=True):
            for site in (*sites.flows(job.flows)[0], *sites.flows(flows)[0]):
                if site.switch is None:
                    everywhere += 1
                else:
                    at[site.switch] += 1
            for listening in sites.all_listening(job):
                at_switches, anywhere = listening.rules_at()
                at.update(at_switches)
                everywhere += anywhere
        return max((everywhere + at[switch.dpid] for switch in snapshot.switches), default=0)


def place_rules(snapshot: Snapshot, *, between_jobs: bool) -> int:
    """Returns how many rules the hosts with jobs need at the switch that holds most of them.

    Without ``between_jobs`` only those that share a job with another host need any.
    """
    if not snapshot.has_places:
        return 0
    at, everywhere = places(snapshot.hosts, snapshot.jobs, between_jobs=between_jobs).rules_at()
    return max((everywhere + at[switch.dpid] for switch in snapshot.switches), default=0)


def by_port(jobs: Sequence[Job]) -> tuple[tuple[Flow, ...], ...]:
    """Returns each job's discovered flows, with one for several that share a port.

    That is done only where no other job uses the port between the same hosts.
    """
    users: defaultdict[tuple[str, str, bool, int], set[str]] = defaultdict(set)
    for job in jobs:
        for flow in _of_tcp(job):
            for end in _ends(flow):
                users[end].add(job.id)
    reduced = []
    for job in jobs:
        count = Counter(end for flow in job.found for end in _ends(flow))
        whole = {end for end, times in count.items() if users[end] == {job.id} and times > 1}
        # A flow that names only one port already stands for all flows with that port.
        whole |= {end for flow in job.found if len(_ends(flow)) == 1 for end in _ends(flow)}
        flows = set()
        for flow in job.found:
            shared = [end for end in _ends(flow) if end in whole]
            if len(_ends(flow)) == 2 and shared:
                src, dst, is_source, port = max(shared, key=lambda end: (count[end], end))
                flows.add(Flow(job.id, src, dst, port, None) if is_source else Flow(job.id, src, dst, None, port))
            else:
                flows.add(flow)
        reduced.append(_same(job.found, flows))
    return tuple(reduced)


def by_pair(jobs: Sequence[Job]) -> tuple[tuple[Flow, ...], ...]:
    """Returns each job's discovered flows, with one for all from a host to another where no other job has such a flow.

    Traffic of listening ports does not count, because its rules go before those of a pair.
    """
    users: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for job in jobs:
        for flow in _of_tcp(job):
            users[flow.src, flow.dst].add(job.id)
    reduced = []
    for job in jobs:
        flows = {
            Flow(job.id, flow.src, flow.dst) if users[flow.src, flow.dst] == {job.id} else flow for flow in job.found
        }
        reduced.append(_same(job.found, flows))
    return tuple(reduced)


def _of_tcp(job: Job) -> Iterator[Flow]:
    """Yields the flows of a job that may have packets in common with connections of TCP."""
    return (flow for flow in chain(job.flows, job.found) if flow.protocol in {"tcp", "any"})


def _ends(flow: Flow) -> list[tuple[str, str, bool, int]]:
    """Returns the ports that a flow names: source, destination, whether the port is the source's, and its number."""
    ports = ((True, flow.src_port), (False, flow.dst_port))
    return [(flow.src, flow.dst, is_source, port) for is_source, port in ports if port is not None]


def _same(before: tuple[Flow, ...], now: Iterable[Flow]) -> tuple[Flow, ...]:
    """Returns the new flows in order, or the old tuple where they are equal."""
    ordered = tuple(sorted(now, key=lambda flow: (flow.src, flow.dst, flow.src_port or 0, flow.dst_port or 0)))
    return before if ordered == before else ordered
