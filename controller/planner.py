"""``plan``: the pure function from what is known to what should be, with the reason for each job.

Dry-run is ``plan`` without applying it; ``explain`` prints it; the simulator calls the same function.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from controller.model import Ordering, Snapshot
from controller.ordering.bssi import bssi, completion_times
from controller.ordering.classes import Assign, inversions, layered_and_inversions, top
from controller.ordering.loads import Floats, LoadMatrix, load_matrix, loads_left, port_numbers
from controller.policies.base import Policy
from controller.rules.own_dscps.order import together
from controller.rules.rule import Rule

CompileRules = Callable[[Snapshot, Mapping[str, int]], frozenset[Rule]]
Judge = Callable[[Snapshot, Ordering], tuple[float, float]]
"""Returns how good an ordering is, and how good the best could be; see ``objective_and_bound``."""


class PlanError(RuntimeError):
    """A policy broke its contract; the message says which and how."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What should be. ``classes`` has every job of the snapshot; ``rules`` is all that the switches should hold.

    ``objective_seconds`` and ``lower_bound_seconds`` are the weighted mean V of the ordering over all jobs (see
    ``bssi.completion_times``; a job's load is that of all iterations it has left) and its bound over all orders; nan
    where they were not computed.
    ``moves`` counts the jobs whose class differs from the plan before, ``inversions`` the pairs of jobs that meet at a
    port and that too few classes did not keep apart in their order.
    """

    made_at: float
    ordering: Ordering
    classes: Mapping[str, int]
    rules: frozenset[Rule]
    objective_seconds: float
    lower_bound_seconds: float
    moves: int
    inversions: int


def no_rules(_snapshot: Snapshot, _classes: Mapping[str, int]) -> frozenset[Rule]:
    """Returns no rules: the simulator and dry runs have no switches."""
    return frozenset()


def no_judgement(_snapshot: Snapshot, _ordering: Ordering) -> tuple[float, float]:
    """Returns nan for objective and bound, for plans that nobody reads, such as the thousands of a simulation."""
    return math.nan, math.nan


def plan(
    snapshot: Snapshot,
    previous: Plan | None,
    *,
    policy: Policy,
    compile_rules: CompileRules = no_rules,
    assign: Assign = "layered",
    judge: Judge | None = None,
) -> Plan:
    """Returns the plan: it orders the jobs, cuts the order into classes, and compiles the rules.

    ``previous`` is the plan before; its ordering reaches the policy only if it was that policy's own. ``assign`` is
    how classes are cut (see ``controller.ordering.classes``). ``judge`` is ``objective_and_bound`` if None; it only
    describes the plan, which is the same with ``no_judgement``. Raises PlanError where a policy leaves a job out, names
    one twice, or names an unknown job.
    """
    own = previous.ordering if previous is not None and previous.ordering.policy == policy.name else None
    ordering = policy.order(snapshot, own)
    check(ordering, snapshot)
    before = previous.classes if previous is not None else {}
    classes, inverted = cut(snapshot, ordering, assign, before)
    objective, bound = (judge or objective_and_bound)(snapshot, ordering)
    return Plan(
        made_at=snapshot.now,
        ordering=ordering,
        classes=classes,
        rules=compile_rules(snapshot, classes),
        objective_seconds=objective,
        lower_bound_seconds=bound,
        moves=sum(1 for job, new_class in classes.items() if job in before and before[job] != new_class),
        inversions=inverted,
    )


def cut(
    snapshot: Snapshot, ordering: Ordering, assign: Assign, previous: Mapping[str, int] | None = None
) -> tuple[dict[str, int], int]:
    """Returns the classes of an ordering, and the number of its inversions in them.

    Jobs conflict at the ports and links that their demand or their flows cross. Jobs that share a DSCP have one class.
    """
    numbers = port_numbers(snapshot.hosts, snapshot.routes)
    shared = {job.id: numbers.used_by(job) for job in snapshot.jobs}
    if assign == "layered":
        classes, inverted = layered_and_inversions(ordering, snapshot.classes, shared, previous)
    else:
        classes = top(ordering, snapshot.classes)
        inverted = inversions(ordering, classes, shared)
    joined = together(snapshot.jobs, classes)
    return joined, inverted if joined == classes else inversions(ordering, joined, shared)


def objective_and_bound(
    snapshot: Snapshot, ordering: Ordering, bound: Callable[[LoadMatrix, Floats], float] | None = None
) -> tuple[float, float]:
    """Returns the weighted mean V of an ordering in seconds, and its lower bound over every order.

    ``bound`` computes the bound (see ``controller.ordering.bounds``); None: the dual bound, which BSSI's run gives.
    Both values are 0 without jobs. Raises what ``bound`` raises.
    """
    if not snapshot.jobs:
        return 0.0, 0.0
    loads: LoadMatrix = loads_left(snapshot, load_matrix(snapshot))
    weights = np.array([job.weight for job in snapshot.jobs], dtype=float)
    index = {job.id: j for j, job in enumerate(snapshot.jobs)}
    finish = completion_times(loads, [[index[job] for job in band] for band in ordering.bands])
    total = float(weights.sum())
    lower = bssi(loads, weights).lower_bound if bound is None else bound(loads, weights)
    return float(weights @ finish) / total, lower / total


def check(ordering: Ordering, snapshot: Snapshot) -> None:
    """Raises PlanError where an ordering breaks the contract of policies."""
    placed = [job for band in ordering.bands for job in band]
    expected = {job.id for job in snapshot.jobs}
    if len(placed) != len(set(placed)) or set(placed) != expected:
        twice = sorted(job for job, times in Counter(placed).items() if times > 1)
        raise PlanError(
            f"policy {ordering.policy} broke its contract: left out {sorted(expected - set(placed))}, "
            f"unknown {sorted(set(placed) - expected)}, twice {twice}"
        )
    if silent := [job for job in placed if not ordering.reasons.get(job)]:
        raise PlanError(f"policy {ordering.policy} gave no reason for {silent}")
