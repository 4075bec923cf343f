"""What the parts of a job declare together."""

from __future__ import annotations

import dataclasses
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.declared.declared import Declared
from controller.declared.parts.host_part import HostPart
from controller.declared.parts.joined import join
from controller.declared.parts.part import Part
from controller.declared.parts.parts_of_job import PartsOfJob
from controller.model import Metric
from controller.pieces import whole
from controller.wire import JobSpec, MetricSpec, PartSpec

LOSS = Metric("loss", "min")


def parts_of(**told: Any) -> PartsOfJob:
    """The parts of a job, by host."""
    return PartsOfJob(HostPart(host, Part("slurm", user="alice")._replace(**part), 1.0) for host, part in told.items())


def test_each_host_has_one_task_and_no_port() -> None:
    spec = join(parts_of(h2={}, h1={}))
    assert [(task.role, task.host, task.port) for task in spec.tasks] == [("peer", "h1", None), ("peer", "h2", None)]
    assert spec.hosts == {"h1", "h2"}
    assert spec.user == "alice"
    assert spec.demand == spec.flows == ()


@pytest.mark.parametrize(
    "told",
    [
        {"h1": {}},
        {"h1": {"family": "resnet", "model": "resnet50", "iterations": 90.0, "target": 0.5, "metric": LOSS}, "h2": {}},
        {"h1": {"user": None, "family": ""}},
        {"h1": {"user": 'a "quoted" \\ user', "model": "größer"}},
    ],
)
def test_it_is_what_the_same_spec_registered_whole_would_be(told: dict[str, Any]) -> None:
    joined = join(parts_of(**told))
    registered = Declared.of(JobSpec.model_validate_json(joined.text))
    assert joined == registered, "the text is that of the spec"
    for field in dataclasses.fields(Declared):
        if field.name not in ("claims", "traffic"):
            assert getattr(joined, field.name) == getattr(registered, field.name), field.name
    assert joined.claims == registered.claims
    assert joined.traffic.flows == registered.traffic.flows == ()
    assert joined.traffic.listeners.ends == registered.traffic.listeners.ends


def test_the_part_of_rank_0_says_what_the_metric_is() -> None:
    told = {
        "h1": {"metric": Metric("accuracy"), "target": 0.9, "iterations": 5.0, "family": "a"},
        "h2": {"metric": LOSS, "is_first": True},
    }
    spec = join(parts_of(**told))
    assert (spec.metric, spec.target, spec.iterations, spec.family) == (LOSS, None, None, None)


def test_without_rank_0_the_first_host_that_knows_says_it() -> None:
    told = {"h1": {}, "h2": {"metric": LOSS, "iterations": 5.0}, "h3": {"iterations": 6.0, "family": "a"}}
    spec = join(parts_of(**told))
    assert (spec.metric, spec.iterations, spec.family) == (LOSS, 5.0, "a")


def test_a_part_that_was_removed_is_none_of_the_job() -> None:
    parts = parts_of(h1={}, h2={"is_first": True, "hosts": frozenset({"h1", "h2"})})
    known = parts.get("h2")
    assert known is not None
    parts.put(dataclasses.replace(known, over="removed", over_at=2.0))
    assert join(parts).hosts == {"h1"}
    assert parts.first is None
    assert parts.had_first, "progress is still that of rank 0"
    assert parts.missing == []


def test_the_same_list_of_hosts_is_kept_once() -> None:
    names = [f"h{i}" for i in range(50)]
    parts = parts_of(**{name: {"hosts": frozenset(list(names))} for name in names})
    assert len(parts.lists) == 1
    assert len({id(part.part.hosts) for part in parts}) == 1
    assert join(parts).size == 100, "50 tasks, and 50 names in one list"
    for name in names:
        parts.forget(name)
    assert len(parts.lists) == len(parts) == 0
    assert parts.is_over


text = st.text('ab "\\é', max_size=5)
specs = st.builds(
    PartSpec,
    launcher=st.sampled_from(["slurm", "torchrun"]),
    user=st.none() | text.filter(bool),
    family=st.none() | text,
    model=st.none() | text,
    metric=st.none() | st.builds(MetricSpec, name=text.filter(bool), direction=st.sampled_from(["max", "min"])),
    target=st.none() | st.floats(-1e9, 1e9),
    iterations=st.none() | st.floats(1.0, 1e9),
    world_size=st.none() | st.integers(1, 4096),
    ranks=st.none() | st.integers(1, 8),
    is_first=st.booleans(),
    hosts=st.lists(st.sampled_from(["h1", "h2", "h3"]), max_size=3).map(tuple),
    arrival=st.none() | st.floats(0, 1e9),
)


@given(specs)
def test_a_part_crosses_to_another_process_as_it_is(spec: PartSpec) -> None:
    part = Part.of(spec)
    assert whole(Part.from_frames(part.frames())) == part


@given(st.dictionaries(st.sampled_from(["h1", "h2", "h3", "h4"]), specs, min_size=1), st.randoms())
def test_the_order_in_which_parts_come_changes_nothing(told: dict[str, PartSpec], random: Any) -> None:
    parts = [HostPart(host, Part.of(spec)._replace(is_first=host == "h2"), 1.0) for host, spec in told.items()]
    shuffled = random.sample(parts, len(parts))
    assert join(PartsOfJob(parts)).text == join(PartsOfJob([*shuffled, *parts])).text


def test_ten_thousand_parts_take_little_memory() -> None:
    names = [f"node{i:03d}" for i in range(100)]
    tracemalloc.start()
    try:
        jobs = [PartsOfJob() for _ in range(100)]
        for parts in jobs:
            for name in names:
                # Each part comes with a list of its own, whose names were parsed anew.
                hosts = frozenset(f"node{i:03d}" for i in range(100))
                parts.put(HostPart(name, Part("slurm", user="alice", hosts=hosts), 1.0))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(map(len, jobs)) == 10_000
    assert held < 20e6, "each with its own list would be 130 MB"
