"""Reduces the rules for discovered connections until they fit into the switches' tables. Pure.

Discovered connections become flows, and flows become rules. There are three steps, each with fewer rules than the one
before:

- *links* takes the discovered flows. Several flows of a job that share a port which no other job uses become one.
- *pairs* takes one flow for all packets from one host to another where only one job has flows between them. Traffic of
  no job then gets the job's class too, so this step is taken only where *links* does not fit.
- *marked* matches the DSCP alone, with O(classes) rules; hosts mark their jobs' packets.

The first step that fits into the budget is taken. A finer step comes back only when it would leave some room, and not
before some time has passed, so that connections that come and go do not change all rules again and again.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from controller.model import Flow, Job, Snapshot
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


DiscoveredFlows = tuple[tuple[Flow, ...], ...]
"""The discovered flows of each job of a snapshot."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A snapshot whose flows fit into the budget, and the step that was taken.

    ``needs`` is how many rules the jobs' flows would need in step *links*, at the switch that holds most of them.
    ``rules`` is the same number in this step; it is 0 where only the DSCP is matched.
    """

    snapshot: Snapshot
    step: Step
    needs: int
    rules: int


class TableBudget:
    """Keeps the flows of snapshots within a number of rules for each switch. It remembers the step. Not thread-safe."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.step = Step.LINKS
        self._since = float("-inf")
        self._latest: _Reduced | None = None

    def fit(self, snapshot: Snapshot, now: float) -> Fitted:
        """Returns the snapshot with flows that fit. ``now`` is the time of a monotonic clock, in seconds."""
        if self._latest is None or not self._latest.is_of(snapshot):
            self._latest = _Reduced(snapshot)
        reduced = self._latest
        step = self._choose(reduced, now)
        chosen = reduced.links if step is Step.LINKS else reduced.pairs
        jobs = tuple(
            job if job.found is flows else replace(job, found=flows)
            for job, flows in zip(snapshot.jobs, chosen, strict=True)
        )
        fitted = replace(snapshot, jobs=jobs, degraded=step is Step.MARKED)
        rules = {Step.LINKS: reduced.link_rules, Step.PAIRS: reduced.pair_rules if step is Step.PAIRS else 0}
        return Fitted(fitted, step, reduced.link_rules, rules.get(step, 0))

    def _choose(self, reduced: _Reduced, now: float) -> Step:
        def best(budget: float) -> Step:
            if reduced.link_rules <= budget:
                return Step.LINKS
            return Step.PAIRS if reduced.pair_rules <= budget else Step.MARKED

        wanted = best(self.budget)
        if wanted < self.step:
            # A finer step needs room to spare, and some time at the coarser step.
            wanted = self.step if now - self._since < BACK_SECONDS else min(best(BACK_SHARE * self.budget), self.step)
        if wanted is not self.step:
            self.step, self._since = wanted, now
        return self.step


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
                and job.found is other.found
                and job.found_more == other.found_more
                for job, other in zip(mine.jobs, snapshot.jobs, strict=True)
            )
        )

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
            at_switches, anywhere = sites.listening(job.listeners).rules_at()
            at.update(at_switches)
            everywhere += anywhere
        return max((everywhere + at[switch.dpid] for switch in snapshot.switches), default=0)


def by_port(jobs: Sequence[Job]) -> tuple[tuple[Flow, ...], ...]:
    """Returns each job's discovered flows, with one for several that share a port.

    That is done only where no other job uses the port between the same hosts.
    """
    users: defaultdict[tuple[str, str, bool, int], set[str]] = defaultdict(set)
    for job in jobs:
        for flow in (*job.flows, *job.found):
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
        for flow in (*job.flows, *job.found):
            users[flow.src, flow.dst].add(job.id)
    reduced = []
    for job in jobs:
        flows = {
            Flow(job.id, flow.src, flow.dst) if users[flow.src, flow.dst] == {job.id} else flow for flow in job.found
        }
        reduced.append(_same(job.found, flows))
    return tuple(reduced)


def _ends(flow: Flow) -> list[tuple[str, str, bool, int]]:
    """Returns the ports that a flow names: source, destination, whether the port is the source's, and its number."""
    ports = ((True, flow.src_port), (False, flow.dst_port))
    return [(flow.src, flow.dst, is_source, port) for is_source, port in ports if port is not None]


def _same(before: tuple[Flow, ...], now: Iterable[Flow]) -> tuple[Flow, ...]:
    """Returns the new flows in order, or the old tuple where they are equal."""
    ordered = tuple(sorted(now, key=lambda flow: (flow.src, flow.dst, flow.src_port or 0, flow.dst_port or 0)))
    return before if ordered == before else ordered
