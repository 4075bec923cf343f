"""Fewer rules for found connections, and what to do where a switch has no room for them. Pure.

Found links become flows, and flows rules. Three steps, each with fewer rules than the one before:

- *links*: what was found, with one for several flows of a job that share a port which no other job uses there.
- *pairs*: where one job alone talks between two hosts, one flow for all that the two say to each other. Traffic that is
  no job's rides along, so this is done only where it must be.
- *marked*: the switch looks at the DSCP alone, O(classes) rules; hosts mark their jobs' packets.

The first that fits into the budget is taken. What was given up comes back only when it would leave some room, and not
sooner than after a while, so that a job's connections that come and go do not turn the network over and over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

from controller.model import Flow, Job, Snapshot
from controller.rules.places import places_on

BACK_SHARE = 0.8
"""Go back to a finer step only when it needs at most this share of the budget."""

BACK_SECONDS = 30.0
"""Stay at least this long on a coarser step before going back to a finer one."""


class Step(IntEnum):
    """How found connections are told apart."""

    LINKS = 0
    PAIRS = 1
    MARKED = 2


Found = tuple[tuple[Flow, ...], ...]
"""The found flows of each job of a snapshot."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A snapshot whose flows fit. ``needs``: rules that the jobs' flows need at one switch, at most, told by links.

    ``rules``: in this step; 0 where the DSCP alone is looked at.
    """

    snapshot: Snapshot
    step: Step
    needs: int
    rules: int


class TableBudget:
    """Keeps the flows of snapshots within a number of rules a switch; remembers the step. For one thread."""

    def __init__(self, budget: int) -> None:
        self.budget = budget
        self.step = Step.LINKS
        self._since = float("-inf")
        self._latest: _Reduced | None = None

    def fit(self, snapshot: Snapshot, now: float) -> Fitted:
        """The snapshot with flows that fit. ``now``: of a clock that no one sets."""
        if self._latest is None or not self._latest.is_of(snapshot):
            self._latest = _Reduced(snapshot)
        reduced = self._latest
        step = self._choose(reduced, now)
        chosen = reduced.links if step is Step.LINKS else reduced.pairs
        jobs = tuple(
            job if job.found is found else replace(job, found=found)
            for job, found in zip(snapshot.jobs, chosen, strict=True)
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
            # Back only with room to spare, and never at once.
            wanted = self.step if now - self._since < BACK_SECONDS else min(best(BACK_SHARE * self.budget), self.step)
        if wanted is not self.step:
            self.step, self._since = wanted, now
        return self.step


class _Reduced:
    """The flows of one snapshot's jobs, reduced, and the rules that they need; worked out once, as far as needed."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        any_found = any(job.found for job in snapshot.jobs)
        self.links: Found = by_port(snapshot.jobs) if any_found else tuple(job.found for job in snapshot.jobs)
        self.link_rules = self._rules(self.links) + sum(job.found_more for job in snapshot.jobs)

    def is_of(self, snapshot: Snapshot) -> bool:
        """Whether another snapshot has the same flows, on the same hosts and switches."""
        mine = self._snapshot
        return (
            len(mine.jobs) == len(snapshot.jobs)
            and mine.hosts == snapshot.hosts
            and mine.switches == snapshot.switches
            and all(
                one.id == other.id
                and one.flows is other.flows
                and one.listeners is other.listeners
                and one.found is other.found
                and one.found_more == other.found_more
                for one, other in zip(mine.jobs, snapshot.jobs, strict=True)
            )
        )

    @cached_property
    def pairs(self) -> Found:
        """With one flow for a whole pair."""
        jobs = self._snapshot.jobs
        return by_pair([replace(job, found=found) for job, found in zip(jobs, self.links, strict=True)])

    @cached_property
    def pair_rules(self) -> int:
        """What those need."""
        return self._rules(self.pairs)

    def _rules(self, found: Found) -> int:
        """The rules for the jobs' traffic at the switch that holds most of them."""
        snapshot = self._snapshot
        everywhere = 0
        at: Counter[int] = Counter()
        places = places_on(snapshot.hosts)
        for job, more in zip(snapshot.jobs, found, strict=True):
            for site in (*places.flows(job.flows)[0], *places.flows(more)[0]):
                if site.switch is None:
                    everywhere += 1
                else:
                    at[site.switch] += 1
            at_switches, anywhere = places.listening(job.listeners).rules_at()
            at.update(at_switches)
            everywhere += anywhere
        return max((everywhere + at[switch.dpid] for switch in snapshot.switches), default=0)


def by_port(jobs: Sequence[Job]) -> tuple[tuple[Flow, ...], ...]:
    """Found flows of each job with one for several that share a port, where that port toward that host is the job's."""
    users: defaultdict[tuple[str, str, bool, int], set[str]] = defaultdict(set)
    for job in jobs:
        for flow in (*job.flows, *job.found):
            for end in _ends(flow):
                users[end].add(job.id)
    reduced = []
    for job in jobs:
        count = Counter(end for flow in job.found for end in _ends(flow))
        whole = {end for end, times in count.items() if users[end] == {job.id} and times > 1}
        # One with an open port already stands for all with that port.
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
    """Found flows of each job with one for all between two hosts, where no other job has a flow between them.

    What is for a listening port or from one does not count: its rules go before those of a pair.
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
    """The ports that a flow names: from, to, whether it is the source's, and the port."""
    ports = ((True, flow.src_port), (False, flow.dst_port))
    return [(flow.src, flow.dst, is_source, port) for is_source, port in ports if port is not None]


def _same(before: tuple[Flow, ...], now: Iterable[Flow]) -> tuple[Flow, ...]:
    """The new flows in order; the same object where nothing is another."""
    ordered = tuple(sorted(now, key=lambda flow: (flow.src, flow.dst, flow.src_port or 0, flow.dst_port or 0)))
    return before if ordered == before else ordered
