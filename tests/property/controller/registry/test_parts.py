"""Whatever the order in which hosts tell of a job, the job is the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from controller.declared.parts.part import Part
from controller.refusals import Conflict
from controller.wire import HostReport, PartSpec
from tests.support.controller.registry.registry_world import World

Message = Callable[[World], object]
FIRST = "h2"
HOSTS = ("h1", "h2", "h3")


def put(host: str, arrival: float, told: dict[str, Any], world: World) -> None:
    body = {"launcher": "slurm", "user": "alice", "arrival": arrival, "is_first": host == FIRST} | told
    world.registry.parts.put("a", host, Part.of(PartSpec.model_validate(body)), 0.0, by_host=True, earliest=None)


def remove(host: str, arrival: float, world: World) -> None:
    world.registry.parts.remove("a", host, arrival, 0.0)


def report(host: str, seq: int, part: dict[str, Any], world: World) -> None:
    body = {"session": host, "seq": seq, "sent_at": 1000.0, "jobs": [{"job": "a", "followed": True} | part]}
    world.registry.report(host, HostReport.model_validate(body), 0.0)


@st.composite
def messages_of(draw: Any, host: str) -> list[Message]:
    """What one host tells, in the order in which it does."""
    told = {name: draw(st.none() | st.just(value)) for name, value in (("iterations", 50.0), ("family", host))}
    told["hosts"] = draw(st.sampled_from([[], list(HOSTS)]))
    arrival, messages = 900.0, []
    for launch in range(draw(st.integers(1, 2))):
        arrival += 30.0 * launch
        messages.append(partial(put, host, arrival, told))
        for seq in range(draw(st.integers(0, 2))):
            points = [{"iteration": 10.0 * launch + seq, "time": arrival + seq, "metric": 0.5}]
            told_now = {"points": points, "sent_bytes": 5.0 * seq, "as_of": arrival + 5.0}
            messages.append(partial(report, host, 10 * launch + seq + 1, told_now))
        if host != FIRST and draw(st.booleans()):
            ending = {"ended": True, "as_of": arrival + 10.0}
            over = (partial(report, host, 10 * launch + 9, ending), partial(remove, host, arrival))
            messages.append(draw(st.sampled_from(over)))
    return messages


def merged(told: list[list[Message]], random_: random.Random, *, repeats: float) -> World:
    """A world that has heard all messages, those of each host in order, and some of them again later.

    It hears of rank 0 first. Else the job could end on the other hosts before it is known that it runs there.
    """
    world = World()
    rest = [list(messages) for messages in told]
    heard = [rest[HOSTS.index(FIRST)].pop(0)]
    heard[0](world)
    while any(rest):
        messages = random_.choice([messages for messages in rest if messages])
        heard.append(messages.pop(0))
        heard[-1](world)
        if random_.random() < repeats:
            random_.choice(heard)(world)
    return world


def facts(world: World) -> object:
    view = world.registry.job_state("a")
    assert view.parts is not None
    parts = {part.host: part.state(is_over=False) for part in view.parts}
    (job,) = world.snapshot().jobs
    return view.state, view.spec.text, view.arrival, parts, view.parts.missing, job.progress, job.sent_bytes


@given(st.tuples(*(messages_of(host) for host in HOSTS)), st.integers(0, 2**32))
def test_any_order_gives_the_same_job(told: tuple[list[Message], ...], seed: int) -> None:
    # Rank 0 does not end, so the job runs on; no part comes after its end.
    once = merged(list(told), random.Random(seed), repeats=0.0)
    again = merged(list(told), random.Random(seed + 1), repeats=0.5)
    assert facts(once) == facts(again)


@given(st.permutations(["put", "put", "old", "end", "end", "again"]))
def test_a_job_that_has_ended_stays_so_whatever_comes_again(order: list[str]) -> None:
    world = World()
    put("h2", 900.0, {}, world)
    report("h2", 1, {"points": [{"iteration": 3.0, "time": 901.0}]}, world)
    report("h2", 2, {"ended": True, "as_of": 950.0}, world)
    late: dict[str, Message] = {
        "put": partial(put, "h2", 900.0, {}),
        "old": partial(put, "h1", 900.0, {}),
        "end": partial(report, "h2", 2, {"ended": True, "as_of": 950.0}),
        "again": partial(report, "h2", 1, {"points": [{"iteration": 3.0, "time": 901.0}]}),
    }
    for name in order:
        try:
            late[name](world)
        except Conflict as refusal:
            assert name == "old", refusal
    view = world.registry.job_state("a")
    assert (view.state, view.iterations_done) == ("ended", 3.0)
