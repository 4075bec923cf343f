"""Joins the parts of a job into one declaration, as if somebody had registered the job whole.

The result depends on the parts alone, not on the order in which they came.
"""

from __future__ import annotations

from typing import Any

from controller.declared.claimed_traffic import ClaimedTraffic
from controller.declared.claims import Claims
from controller.declared.declared import Declared
from controller.declared.json_texts import with_members
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.families.names import family_in_force
from controller.model import Metric
from controller.wire import JobSpec, MetricSpec
from controller.wire.base import Unit

_NO_CLAIMS = Claims(frozenset(), frozenset(), frozenset())
_NO_TRAFFIC = ClaimedTraffic(())
_TOLD = ("family", "model", "metric", "target", "iterations", "unit")


def join(parts: PartsOfJob) -> Declared:
    """Returns what the parts declare together; there must be one at least.

    Each host has one task, of an all-reduce, without a port: agents find the traffic and measure the demand. It costs
    some 100 ns a part, because a job on 1,000 hosts is joined anew for each of its parts.
    """
    leading = parts.leading
    assert leading is not None
    told = _told(parts)
    metric: Metric = told.pop("metric") or Metric()
    unit: Unit = told.pop("unit") or "iteration"
    spec = JobSpec(
        metric=MetricSpec(name=metric.name, direction=metric.direction), user=leading.part.user, unit=unit, **told
    )
    tasks = f"[{','.join([part.task_text for part in parts])}]"
    return Declared(
        text=with_members(spec.model_dump_json(exclude={"tasks"}), tasks=tasks),
        metric=metric,
        target=spec.target,
        iterations=spec.iterations,
        unit=spec.unit,
        compute_seconds=spec.compute_seconds,
        predicted=None,
        weight=spec.weight,
        arrival=None,
        stage=None,
        rungs_left=None,
        tasks=tuple([part.task for part in parts]),
        flows=(),
        demand=(),
        hosts=frozenset([part.host for part in parts]),
        size=len(parts) + sum(map(len, parts.lists)),
        claims=_NO_CLAIMS,
        traffic=_NO_TRAFFIC,
        family=family_in_force(spec.family, spec.model),
        user=spec.user,
    )


def _told(parts: PartsOfJob) -> dict[str, Any]:
    """Returns what the part tells that rank 0 runs in; without one, of each the word of the first host that knows it.

    Progress comes from rank 0. So no other part may say what its metric is.
    """
    first = parts.first
    if first is not None:
        return {name: getattr(first.part, name) for name in _TOLD}
    told: dict[str, Any] = dict.fromkeys(_TOLD)
    for part in parts:
        told = {name: getattr(part.part, name) if value is None else value for name, value in told.items()}
        if None not in told.values():
            break
    return told
