"""The plan in force as a record of the journal, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.model import Ordering
from controller.planner import Plan

KIND, ID = "plan", "last"


def to_record(plan: Plan, epoch: int, host_epochs: Mapping[str, Any]) -> dict[str, Any]:
    """The record: all but the rules, which are compiled anew."""
    ordering = plan.ordering
    return {
        "made_at": plan.made_at,
        "epoch": epoch,
        "host_epochs": dict(host_epochs),
        "policy": ordering.policy,
        "bands": [list(band) for band in ordering.bands],
        "reasons": dict(ordering.reasons),
        "memory": dict(ordering.memory),
        "watch": dict(ordering.watch),
        "classes": dict(plan.classes),
        "objective_seconds": plan.objective_seconds,
        "lower_bound_seconds": plan.lower_bound_seconds,
    }


def from_record(record: Mapping[str, Any]) -> Plan:
    """The plan of a record, without rules."""
    return Plan(
        made_at=record["made_at"],
        ordering=Ordering(
            policy=record["policy"],
            bands=tuple(tuple(band) for band in record["bands"]),
            reasons=record["reasons"],
            memory=record["memory"],
            watch=record["watch"],
        ),
        classes=record["classes"],
        rules=frozenset(),
        objective_seconds=record["objective_seconds"],
        lower_bound_seconds=record["lower_bound_seconds"],
        moves=0,
    )
