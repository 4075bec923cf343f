"""Local search in the simulator for a fixed order of all trials that makes stages end soon: what can surely be won.

An order puts every trial of every rung at a place. The search begins with the brackets one after the other, in each
order where there are few, the longest trial of a rung first. Then it moves a bracket, a rung or a trial to another
place, at random, and keeps what is no worse. So it knows which trials go on, when each rung ends, and how the network
serves them. What it finds can be reached; what it does not find may still be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, permutations
from random import Random

from evaluation.beamer.bounds.least import alone_seconds
from evaluation.beamer.bounds.listed import Listed
from evaluation.beamer.simulation import SimStudies, Times, run
from simulator.limits import Limits

_MOST_STARTS = 24
Order = list[str]


@dataclass(frozen=True, slots=True)
class Found:
    """The best order that was found, its times, and the best of the orders that the search began with."""

    order: tuple[str, ...]
    times: Times
    start: Times


def search(sim: SimStudies, limits: Limits, *, evaluations: int, seed: int = 0) -> Found:
    """Returns the best order of so many simulations. ``limits`` are those that the order is simulated with."""
    random = Random(f"trainyard search {sim.workload.name} {seed}")  # noqa: S311 - to be repeated
    tried = [(evaluate(sim, order, limits), order) for order in islice(starts(sim, random), _MOST_STARTS)]
    best, order = min(tried, key=lambda entry: entry[0].sct)
    start = best
    groups = _groups(sim)
    for _ in range(evaluations - len(tried)):
        moved = _move(order, random.choice(random.choice(groups)), random)
        found = evaluate(sim, moved, limits)
        if found.sct <= best.sct:
            best, order = found, moved
    return Found(tuple(order), best, start)


def evaluate(sim: SimStudies, order: Sequence[str], limits: Limits) -> Times:
    """Returns the times under an order of all jobs."""
    return run(sim, Listed(places={job: float(place) for place, job in enumerate(order)}), limits)


def starts(sim: SimStudies, random: Random) -> Iterator[Order]:
    """Yields orders in which brackets go one after the other: as they come, then all others or random ones."""
    alone = alone_seconds(sim)
    brackets = [
        [job.id for rung in rungs for job in sorted(rung.jobs, key=lambda job: -alone[job.id])]
        for rungs in sim.brackets.values()
    ]
    if len(brackets) <= 4:
        orders: Iterator[Sequence[Order]] = permutations(brackets)
    else:
        orders = chain([brackets], iter(lambda: random.sample(brackets, len(brackets)), None))
    return (list(chain.from_iterable(order)) for order in orders)


def _groups(sim: SimStudies) -> tuple[list[list[str]], ...]:
    """Returns what moves as one: brackets, rungs, and single trials."""
    rungs = [[job.id for job in rung.jobs] for rungs in sim.brackets.values() for rung in rungs]
    brackets = [[job.id for rung in rungs for job in rung.jobs] for rungs in sim.brackets.values()]
    return brackets, rungs, [[job.id] for job in sim.workload.jobs]


def _move(order: Order, group: Sequence[str], random: Random) -> Order:
    """Returns the order with a group's jobs, in their order, next to each other at a random place."""
    moving = set(group)
    rest = [job for job in order if job not in moving]
    place = random.randint(0, len(rest))
    return [*rest[:place], *(job for job in order if job in moving), *rest[place:]]
