"""Whichever plans have gone before, a switch's tables are in the end those that the last plan alone makes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model import Flow, Host, Job, Role, Snapshot, Switch, Task
from controller.rules.compiler import compile_rules
from controller.rules.rule import Rule
from tests.support.controller.dataplane.dataplane_world import connect, make_plane, ready
from tests.support.controller.dataplane.fake_datapath import Behaviour, FakeDatapath

HOSTS = {f"h{n}": Host(f"h{n}", address=f"10.0.0.{n}", switch=1, switch_port=n) for n in range(1, 9)}
RING = Job("ring", tasks=tuple(Task(Role.PEER, name) for name in HOSTS))
PLANS = st.lists(
    st.dictionaries(st.sampled_from("abcd"), st.tuples(st.sets(st.integers(1, 8), min_size=1), st.integers(0, 6))),
    min_size=1,
    max_size=4,
)


def rules_of(jobs: dict[str, tuple[set[int], int]]) -> frozenset[Rule]:
    """The rules where each job has these hosts and this class, beside a job that all hosts have."""
    made = [RING]
    for name, (hosts, _) in jobs.items():
        tasks = tuple(Task(Role.PEER, f"h{n}") for n in sorted(hosts))
        flows = tuple(Flow(name, f"h{n}", "h1", dst_port=5000 + ord(name)) for n in sorted(hosts - {1}))
        made.append(Job(name, tasks=tasks, flows=flows))
    classes = {name: k for name, (_, k) in jobs.items()} | {"ring": 0}
    shot = Snapshot(0.0, HOSTS, tuple(made), switches=(Switch(1),))
    return compile_rules(shot, classes, mode="classified", forwarding="normal")


def tables(switch: FakeDatapath) -> dict[Any, tuple[int, str]]:
    """Each rule's owner and job, and what it does; not the epoch of the plan that added it, and not the gate."""
    return {
        key: (m.cookie & ~(0xFFFF << 32), repr(m.instructions)) for key, m in switch.table.items() if not m.hard_timeout
    }


def tables_after(plans: list[frozenset[Rule]], *, bundles: bool) -> dict[Any, tuple[int, str]]:
    plane = make_plane(answer_seconds=20.0)
    switch = connect(plane, behaviour=Behaviour(bundles=bundles))
    ready(plane)
    for rules in plans:
        assert plane.apply(rules).errors == ()
        assert plane.status()[0].rules == len(rules)
    plane.close()
    return tables(switch)


@pytest.mark.parametrize("bundles", [True, False])
@settings(max_examples=8, deadline=None)
@given(drawn=PLANS)
def test_tables_do_not_depend_on_earlier_plans(bundles: bool, drawn: list[dict[str, tuple[set[int], int]]]) -> None:
    plans = [rules_of(jobs) for jobs in drawn]
    assert tables_after(plans, bundles=bundles) == tables_after(plans[-1:], bundles=True)
