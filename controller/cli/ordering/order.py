"""``trainyard order``: order the jobs of a snapshot file by a policy, without a controller and without a network.

Its options are in ``controller.cli.ordering.order_options``, which loads this module when the command is run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from controller.cli.ordering.snapshot_file import SnapshotError, read_snapshot
from controller.cli.output import CommandError, fail, show_facts, show_table
from controller.documents import text_file
from controller.model import Ordering, Snapshot
from controller.ordering.bounds import BOUNDS, MAX_EXACT_JOBS, Bound
from controller.ordering.classes import Assign
from controller.planner import PlanError, check, cut, objective_and_bound
from controller.policies.base import OptionError, Policy
from controller.policies.registry import PolicyError, make, option_value
from controller.quantities import duration


def run_order(options: argparse.Namespace) -> int:
    """Orders and prints. Returns 2 for a wrong file, policy or option, and 1 where the policy itself fails."""
    try:
        policy = make(options.policy, policy_options(options.option))
        snapshot = read_snapshot(options.file)
        _check_bound(options.bound, len(snapshot.jobs), options.file)
    except (PolicyError, CommandError) as error:
        return fail(str(error), 2)
    except SnapshotError as error:
        return fail(str(error), 2, prefix="")
    try:
        answer = _answer(policy, snapshot, options.assign, BOUNDS[options.bound])
    except OptionError as error:
        return fail(f"policy {options.policy}: {error}", 2)
    except Exception as error:  # The policy may come from any package.
        broken = isinstance(error, PlanError)
        return fail(str(error) if broken else f"policy {options.policy} failed: {type(error).__name__}: {error}", 1)
    if options.json:
        sys.stdout.write(json.dumps(answer, indent=2, allow_nan=False) + "\n")
        return 0
    return _show(answer)


def policy_options(given: Sequence[str]) -> dict[str, Any]:
    """Returns the options in texts such as ``KEY=VALUE``. Raises PolicyError."""
    options: dict[str, Any] = {}
    for text in given:
        key, sign, value = text.partition("=")
        if not sign or not key.isidentifier():
            raise PolicyError(f"option {text!r}: it must be KEY=VALUE, as in online=true")
        if key in options:
            raise PolicyError(f"option {key}: given twice; keep one")
        try:
            options[key] = option_value(value)
        except PolicyError as error:
            raise PolicyError(f"option {key}: {error}") from None
    return options


def _check_bound(bound: str, jobs: int, file: Path) -> None:
    """Raises CommandError where a snapshot has too many jobs for its bound."""
    if bound == "exact" and jobs > MAX_EXACT_JOBS:
        remedy = f"it is for at most {MAX_EXACT_JOBS}; use --bound linear"
        raise CommandError(f"--bound exact: {text_file.name(file)} has {jobs} jobs; {remedy}", 2)


def _answer(policy: Policy, snapshot: Snapshot, assign: Assign, bound: Bound) -> dict[str, Any]:
    began = time.perf_counter()
    ordering: Ordering = policy.order(snapshot, None)
    wall = time.perf_counter() - began
    check(ordering, snapshot)
    classes, _ = cut(snapshot, ordering, assign)
    objective, lower = objective_and_bound(snapshot, ordering, bound)
    placed = [job for band in ordering.bands for job in band]
    return {
        "policy": ordering.policy,
        "order": [list(band) for band in ordering.bands],
        "classes": {job: classes[job] for job in placed},
        "reasons": {job: ordering.reasons[job] for job in placed},
        "objective_seconds": objective,
        "lower_bound_seconds": lower,
        "wall_seconds": wall,
    }


def _show(answer: dict[str, Any]) -> int:
    bound = duration(answer["lower_bound_seconds"])
    show_facts(
        [
            ("policy", answer["policy"]),
            ("objective", f"{duration(answer['objective_seconds'])} (no order is below {bound})"),
            ("ordered in", duration(answer["wall_seconds"])),
        ]
    )
    rows = [
        (position, answer["classes"][job], job, answer["reasons"][job])
        for position, band in enumerate(answer["order"])
        for job in band
    ]
    return show_table(("band", "class", "job", "reason"), rows)
