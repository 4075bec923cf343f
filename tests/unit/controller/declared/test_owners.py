"""Whose traffic is whose, looked up: the same answers as comparing each job with each other."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.declared.claims import Claims
from controller.declared.job_flows import wider
from controller.declared.owners import Owners
from controller.wire import JobSpec
from tests.support.controller.registry.registry_world import World

HOST = st.sampled_from(["h1", "h2", "h3"])
PORT = st.integers(1, 3)
FLOW = st.tuples(HOST, HOST, st.none() | PORT, st.none() | PORT).filter(
    lambda flow: flow[0] != flow[1] and flow[2:] != (None, None)
)
PROTOCOL = st.sampled_from(["tcp", "udp"])
SPEC = st.tuples(
    st.lists(st.tuples(HOST, PORT, PROTOCOL), max_size=2, unique=True), st.lists(st.tuples(FLOW, PROTOCOL), max_size=3)
)


def claims_of(drawn: Any) -> tuple[JobSpec, Claims]:
    ends, flows = drawn
    spec = JobSpec.model_validate(
        {
            "tasks": [{"role": "ps", "host": host, "port": port, "protocol": p} for host, port, p in ends],
            "flows": [
                {"src": s, "dst": d, "src_port": sp, "dst_port": dp, "protocol": p} for (s, d, sp, dp), p in flows
            ],
        }
    )
    return spec, Claims.of(spec)


@settings(max_examples=300, deadline=None)
@given(st.lists(SPEC, max_size=6), st.sets(st.integers(0, 5)), SPEC, FLOW)
def test_what_is_looked_up_is_what_a_comparison_with_each_job_gives(
    drawn: list[Any], removed: set[int], new: Any, flow: Any
) -> None:
    owners = Owners()
    known: dict[str, Claims] = {}
    for number, one in enumerate(drawn):
        spec, claims = claims_of(one)
        clashing = {job for job, other in known.items() if claims.conflict(other, spec) is not None}
        assert owners.clashes(claims) == clashing
        if not clashing:
            owners.add(f"j{number}", claims)
            known[f"j{number}"] = claims
    for number in removed:
        if (gone := known.pop(f"j{number}", None)) is not None:
            owners.remove(f"j{number}", gone)
    spec, claims = claims_of(new)
    assert owners.clashes(claims) == {job for job, other in known.items() if claims.conflict(other, spec) is not None}
    mine = {job for job, its in known.items() if {(flow[0], flow[2]), (flow[1], flow[3])} & its.listens}
    declared = {job for job, its in known.items() if set(wider(flow)) & its.flows}
    owner = owners.owner(flow)
    assert owner in mine if mine else owner in declared if declared else owner is None


def test_a_job_is_compared_with_none_but_those_that_it_meets() -> None:
    world = World()
    compared: list[str] = []
    original = Claims.conflict

    def counted(self: Claims, other: Claims, spec: Any) -> Any:
        compared.append("once")
        return original(self, other, spec)

    Claims.conflict = counted  # type: ignore[method-assign]  # to count
    try:
        for number in range(200):
            world.put(f"j{number}", tasks=[{"role": "ps", "host": "h1", "port": 5000 + number}])
    finally:
        Claims.conflict = original  # type: ignore[method-assign]  # as it was
    assert not compared


def test_a_port_is_free_again_when_its_job_has_ended_or_is_removed() -> None:
    world = World()
    spec = {"tasks": [{"role": "ps", "host": "h1", "port": 5000}]}
    world.put("a", **spec)
    world.tell(jobs=[{"job": "a", "ended": True}])
    world.put("b", **spec)
    world.registry.delete_job("b", 0.0)
    world.put("c", **spec)
    world.put("c", tasks=[{"role": "ps", "host": "h1", "port": 6000}])
    world.put("d", **spec)
    assert {job.id for job in world.snapshot().jobs} == {"c", "d"}
