"""Links between switches are ports of the ordering: who shares only one of them is ordered and kept apart there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from controller.config.config import LinkEntry
from controller.model import (
    Demand,
    Direction,
    Flow,
    Host,
    Job,
    Port,
    Progress,
    Routes,
    Snapshot,
    Switch,
)
from controller.ordering.loads import load_matrix, port_numbers
from controller.ordering.service import attained
from controller.planner import Plan, plan
from controller.policies.fifo import Fifo
from controller.policies.registry import make
from controller.rules.fabric import routes
from tests.support.shared_ports import seconds_by_port

# Two leaves, 1 and 2, with h1 and h2 on the one, h3 and h4 on the other; spines 11 and 12. Servers have 1 Gbit/s.
GIGA = 1e9
MEGABYTE = 1e6
SPINE, BOTH = (11,), (11, 12)
UP = Port("switch 0x1 port 111", Direction.EGRESS)


def cables(spines: Iterable[int], rate_bps: float | None) -> list[LinkEntry]:
    return [
        LinkEntry(a=leaf, a_port=100 + spine, b=spine, b_port=leaf, rate_bps=rate_bps)
        for leaf in (1, 2)
        for spine in spines
    ]


def hosts() -> dict[str, Host]:
    return {f"h{n}": Host(f"h{n}", GIGA, GIGA, f"10.0.0.{n}", 1 if n <= 2 else 2, n) for n in range(1, 5)}


def job(name: str, src: str, dst: str, megabytes: float, **fields) -> Job:
    return Job(name, (Demand(src, dst, megabytes * MEGABYTE),), iterations_total=1.0, **fields)


def snapshot(
    *jobs: Job, links: Iterable[LinkEntry] = (), ready: tuple[int, ...] = (1, 2, 11, 12), computed: bool = True
) -> Snapshot:
    known = routes(hosts(), links, ready, computed=computed)
    return Snapshot(0.0, hosts(), jobs, switches=tuple(map(Switch, ready)), routes=known)


def planned(shot: Snapshot, policy: str = "fifo") -> Plan:
    return plan(shot, None, policy=make(policy))


# Both leave leaf 1 for leaf 2, between hosts of their own; at the servers' ports A needs 8 ms, B 4 ms.
A, B = job("A", "h1", "h3", 1.0), job("B", "h2", "h4", 0.5)


@pytest.mark.parametrize("policy", ["fifo", "sebf", "sincronia", "jpas", "crux", "beamer"])
def test_jobs_that_share_only_an_uplink_get_different_classes(policy: str) -> None:
    apart = planned(snapshot(A, B), policy)
    assert apart.classes == {"A": 0, "B": 0}
    for computed in (True, False):
        shared = planned(snapshot(A, B, links=cables(SPINE, GIGA / 2), computed=computed), policy)
        assert sorted(shared.classes.values()) == [0, 1]
        (first,), (second,) = shared.ordering.bands
        assert shared.classes[first] < shared.classes[second]


@pytest.mark.parametrize("policy", ["sebf", "sincronia", "jpas"])
def test_jobs_are_ordered_by_what_they_load_the_trunk(policy: str) -> None:
    # A has more bytes in all, but to hosts of its own leaf; over the trunk it sends less than B.
    most_at_home = Job(
        "A", (Demand("h1", "h2", 3 * MEGABYTE), Demand("h1", "h3", 0.2 * MEGABYTE)), iterations_total=1.0
    )
    jobs = most_at_home, job("B", "h2", "h4", 1.0)
    assert [band[0] for band in planned(snapshot(*jobs), policy).ordering.bands] == ["B", "A"]
    slow = planned(snapshot(*jobs, links=cables(SPINE, GIGA / 20)), policy)
    assert [band[0] for band in slow.ordering.bands] == ["A", "B"]


def test_the_objective_and_its_bound_count_the_trunk() -> None:
    result = planned(snapshot(A, B, links=cables(SPINE, GIGA / 2)))
    # Over the trunk 16 ms for A, then 8 ms for B; the best order is B first.
    assert result.objective_seconds == pytest.approx((0.016 + 0.024) / 2)
    assert result.lower_bound_seconds == pytest.approx((0.008 + 0.024) / 2)


def test_the_two_directions_of_a_link_are_two_ports() -> None:
    back = job("B", "h4", "h2", 0.5)
    assert planned(snapshot(A, back, links=cables(SPINE, GIGA / 2))).classes == {"A": 0, "B": 0}


def test_who_stays_on_a_leaf_does_not_meet_who_leaves_it() -> None:
    assert planned(snapshot(A, job("B", "h2", "h1", 1.0), links=cables(SPINE, GIGA / 2))).classes == {"A": 0, "B": 0}


def test_a_link_whose_rate_is_not_known_is_no_port() -> None:
    unknown = snapshot(A, B, links=cables(SPINE, None))
    assert unknown.routes is None
    assert planned(unknown).classes == {"A": 0, "B": 0}
    # Beside such a link, both directions of a link whose rate is known count.
    mixed = snapshot(A, B, links=[*cables(SPINE, None)[:1], *cables(SPINE, GIGA / 2)[1:]])
    assert mixed.routes is not None
    assert [port.host for port, _ in mixed.routes.links] == ["switch 0x2 port 111", "switch 0xb port 2"]
    assert planned(mixed).classes == {"A": 0, "B": 1}


def test_jobs_whose_flows_alone_are_known_meet_at_links_too() -> None:
    jobs = [
        Job(name, flows=(Flow(name, *ends, dst_port=1),)) for name, ends in (("A", ("h1", "h3")), ("B", ("h2", "h4")))
    ]
    unknown = Job("C", flows=(Flow("C", "h9", "h4", dst_port=1), Flow("C", "h2", "h9", dst_port=1)))
    assert planned(snapshot(*jobs)).classes == {"A": 0, "B": 0}
    classes = planned(snapshot(*jobs, unknown, links=cables(SPINE, GIGA / 2))).classes
    assert classes == {"A": 0, "B": 1, "C": 2}


def test_switches_that_learn_by_themselves_are_known_where_there_is_one_way_only() -> None:
    assert snapshot(links=cables(SPINE, GIGA), computed=False).routes is not None
    assert snapshot(links=cables(BOTH, GIGA), computed=False).routes is None
    parallel = [LinkEntry(a=1, a_port=10 + n, b=2, b_port=10 + n, rate_bps=GIGA) for n in (1, 2)]
    assert snapshot(links=parallel, computed=False).routes is None
    assert snapshot(links=parallel).routes is not None


def crossed(shot: Snapshot, src: str, dst: str) -> list[str]:
    assert shot.routes is not None
    return [shot.routes.links[link][0].host for link in shot.routes.crossed(src, dst)]


def test_a_spine_that_is_not_ready_is_on_no_path_and_the_order_knows() -> None:
    links = cables(BOTH, GIGA)
    for dst in ("h3", "h4"):
        assert crossed(snapshot(links=links, ready=(1, 2, 12)), "h1", dst) == [
            "switch 0x1 port 112",
            "switch 0xc port 2",
        ]
        assert crossed(snapshot(links=links, ready=(1, 2, 11)), "h1", dst) == [
            "switch 0x1 port 111",
            "switch 0xb port 2",
        ]


def test_routes_are_the_same_object_while_nothing_has_changed() -> None:
    first, again = (snapshot(links=cables(BOTH, GIGA)) for _ in range(2))
    assert first.routes is again.routes
    assert port_numbers(first.hosts, first.routes) is port_numbers(again.hosts, again.routes)
    assert snapshot(links=cables(BOTH, GIGA), ready=(1, 2, 11)).routes is not first.routes
    assert snapshot(links=cables(BOTH, 2 * GIGA)).routes is not first.routes


def test_pairs_that_no_path_joins_or_whose_place_is_unknown_cross_nothing() -> None:
    apart = cables(SPINE, GIGA)[:1]
    known = dict(hosts()) | {"x": Host("x"), "y": Host("y", switch=7, address="10.0.0.7")}
    joined = routes(known, apart, (1, 2, 11), computed=True)
    assert joined is not None
    for pair in [("h1", "h3"), ("h1", "x"), ("x", "h1"), ("h1", "y"), ("h1", "z"), ("h1", "h1"), ("h1", "h2")]:
        assert joined.crossed(*pair) == ()


def test_the_numbers_of_hosts_ports_stay_and_links_come_after_them() -> None:
    shot = snapshot(A, links=cables(SPINE, GIGA / 2))
    numbers = port_numbers(shot.hosts, shot.routes)
    assert len(numbers) == 2 * 4 + 4
    assert numbers.port(3) == Port("h2", Direction.INGRESS)
    assert numbers.port(8) == UP
    by_name = seconds_by_port(load_matrix(shot), 0, numbers)
    (demand,) = A.demand
    ends = (Port(demand.src, Direction.EGRESS), Port(demand.dst, Direction.INGRESS))
    # Both hosts have 1 Gbit/s, the links half of that: up to the spine, and down from it.
    links = (Port("switch 0x1 port 111", Direction.EGRESS), Port("switch 0xb port 2", Direction.EGRESS))
    assert by_name == pytest.approx(dict.fromkeys(ends, 0.008) | dict.fromkeys(links, 0.016))
    assert by_name[UP] == max(by_name.values())


def test_a_silent_job_gains_nothing_where_a_link_is_its_bottleneck() -> None:
    done = (Progress(4.0, 4.0),)
    # Both have sent four iterations, one says so. An iteration takes 8 ms at a server's link, 80 ms at the trunk.
    jobs = [
        replace(job(name, *ends, 1.0), progress=reports, sent_bytes={ends[0]: 4 * MEGABYTE})
        for name, ends, reports in (("reporting", ("h1", "h3"), done), ("silent", ("h2", "h4"), ()))
    ]
    for links, seconds in ((), 0.032), (cables(SPINE, GIGA / 10), 0.32):
        shot = snapshot(*jobs, links=links)
        assert attained(shot, load_matrix(shot).bottlenecks()) == pytest.approx([seconds, seconds])


def test_routes_without_links_change_nothing() -> None:
    plain = snapshot(A, B, job("C", "h1", "h4", 2.0))
    empty = replace(plain, routes=Routes((), lambda _src, _dst: ()))
    for policy in ("fifo", "sincronia", "jpas"):
        assert planned(empty, policy) == planned(plain, policy)


def test_classes_hold_the_jobs_apart_that_only_a_link_joins_and_no_others() -> None:
    jobs = [A, B, job("C", "h1", "h2", 1.0), job("D", "h3", "h4", 1.0)]
    planned_jobs = plan(snapshot(*jobs, links=cables(SPINE, GIGA)), None, policy=Fifo())
    assert planned_jobs.classes == {"A": 0, "B": 1, "C": 1, "D": 2}
