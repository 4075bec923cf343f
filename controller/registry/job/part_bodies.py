"""The parts of a job as records of the journal, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controller.declared.parts.host_part import HostPart
from controller.declared.parts.part import Part
from controller.declared.parts.parts_of_job import HostLists
from controller.journal.bodies import PartBody
from controller.model import Metric
from controller.wire import MetricSpec

_PLAIN = tuple(name for name in Part._fields if name not in ("metric", "hosts"))


def part_text(part: HostPart, lists: HostLists) -> str:
    """Returns a part as the text of a ``PartBody``. A list of hosts is only named there: many parts share it."""
    told, metric = part.part, part.part.metric
    # The wire has checked the values.
    return PartBody.model_construct(
        host=part.host,
        began=part.began,
        by_host=part.by_host,
        over=part.over,
        over_at=part.over_at,
        metric=None if metric is None else MetricSpec.model_construct(name=metric.name, direction=metric.direction),
        told=lists.name(told.hosts),
        **{name: getattr(told, name) for name in _PLAIN},
    ).model_dump_json()


def part_of(body: PartBody, told: Mapping[str, Sequence[str]]) -> HostPart:
    """Returns the part of a record; ``told`` are the job's lists of hosts. One that is not there was forgotten."""
    metric = None if body.metric is None else Metric(body.metric.name, body.metric.direction)
    hosts = frozenset(told.get(body.told, ())) if body.told is not None else frozenset()
    part = Part(metric=metric, hosts=hosts, **{name: getattr(body, name) for name in _PLAIN})
    return HostPart(body.host, part, body.began, body.by_host, body.over, body.over_at)


def told_lists(lists: HostLists) -> dict[str, tuple[str, ...]]:
    """Returns the lists of hosts that parts tell, by their names, for the job's own record."""
    return {name: tuple(sorted(hosts)) for hosts in lists if (name := lists.name(hosts)) is not None}
