"""In any fabric: packets take the links that the ordering counts, and classes keep jobs apart at every one of them."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.config.config import LinkEntry
from controller.model import Demand, Direction, Flow, Host, Job, Port, Snapshot, Switch
from controller.ordering.classes import inversions
from controller.ordering.loads import load_matrix, loads_left, port_numbers
from controller.planner import plan
from controller.policies.registry import make
from controller.rules.compiler import compile_rules
from controller.rules.fabric import inner_ports, routes
from tests.support.controller.dataplane.fake_switch import FakeNetwork, FakeSwitch, Packet
from tests.support.shared_ports import as_shared

HOSTS, SWITCHES = 6, 5
PORT = 5000


class Yard(NamedTuple):
    """A fabric, what is known of it, and what its switches hold."""

    shot: Snapshot
    links: tuple[LinkEntry, ...]


@st.composite
def yards(draw: st.DrawFn, *, missing: int = 0) -> Yard:
    """Hosts on switches, links of known and unknown rates between these (parallel ones too), jobs between the hosts.

    Up to ``missing`` switches without hosts are not ready.
    """
    ends = draw(st.lists(st.tuples(st.integers(1, SWITCHES), st.integers(1, SWITCHES)), min_size=3, max_size=9))
    rates = st.sampled_from([None, 1e8, 4e8, 1e9])
    links = tuple(
        LinkEntry(a=a, a_port=100 + i, b=b, b_port=200 + i, rate_bps=draw(rates))
        for i, (a, b) in enumerate(ends)
        if a != b
    )
    homes = [draw(st.integers(1, SWITCHES)) for _ in range(HOSTS)]
    hosts = {f"h{n}": Host(f"h{n}", 1e9, 1e9, f"10.0.0.{n}", home, n) for n, home in enumerate(homes, 1)}
    pair = st.tuples(*[st.sampled_from(sorted(hosts))] * 2).filter(lambda ends: ends[0] != ends[1])
    flow = st.tuples(pair, st.sampled_from([0.0, 1e6, 3e6]))
    jobs = []
    for j, flows in enumerate(draw(st.lists(st.lists(flow, min_size=1, max_size=3), max_size=7))):
        demand = tuple(Demand(src, dst, size) for (src, dst), size in flows)
        known = tuple(Flow(f"j{j}", *ends, dst_port=PORT + j) for ends, _ in flows)
        jobs.append(Job(f"j{j}", demand, arrival=float(j), flows=known if draw(st.booleans()) else ()))
    ready = sorted(draw(st.sets(st.integers(1, SWITCHES), min_size=SWITCHES - missing)) | set(homes))
    switches = tuple(Switch(dpid, inner_ports(links, dpid)) for dpid in ready)
    classes = draw(st.integers(1, 7))
    return Yard(
        Snapshot(
            0.0, hosts, tuple(jobs), classes, switches=switches, routes=routes(hosts, links, ready, computed=True)
        ),
        links,
    )


def followed(yard: Yard) -> dict[tuple[str, str], list[tuple[int, int]] | None]:
    """The links that a packet between each pair of hosts crosses, as switch and port.

    None where it comes to a switch that is not ready: what becomes of it there is not the controller's to say.
    """
    compiled = compile_rules(yard.shot, {}, mode="classified", forwarding="paths", links=yard.links)
    network = FakeNetwork({s.dpid: FakeSwitch(s.dpid, compiled) for s in yard.shot.switches}, yard.links)
    ready = {switch.dpid for switch in yard.shot.switches}
    ends = {(link.a, link.a_port): link.b for link in yard.links} | {
        (link.b, link.b_port): link.a for link in yard.links
    }
    found: dict[tuple[str, str], list[tuple[int, int]] | None] = {}
    for src, dst in itertools.permutations(yard.shot.hosts.values(), 2):
        packet = Packet(ipv4_src=src.address, ipv4_dst=dst.address, tcp_src=1, tcp_dst=1)
        assert src.switch is not None and src.switch_port is not None
        try:
            hops, left = network.send(packet, src.switch, src.switch_port)
        except KeyError as error:
            assert error.args[0] not in ready
            found[src.name, dst.name] = None
            continue
        way = [(hop.switch, port) for hop in hops for port in hop.verdict.ports]
        assert left in (None, (dst.switch, dst.switch_port))
        found[src.name, dst.name] = [end for end in way if end in ends] if left is not None else []
    return found


def rated(yard: Yard) -> set[str]:
    found = set()
    for link in yard.links:
        if link.rate_bps is not None:
            found |= {named((link.a, link.a_port)), named((link.b, link.b_port))}
    return found


def named(end: tuple[int, int]) -> str:
    return f"switch {end[0]:#x} port {end[1]}"


@settings(max_examples=150, deadline=None)
@given(yards(missing=2))
def test_packets_take_the_links_that_the_ordering_counts(yard: Yard) -> None:
    known = yard.shot.routes
    assert (known is None) == (not rated(yard))
    if known is None:
        return
    assert {port.host for port, _ in known.links} == rated(yard)
    for pair, way in followed(yard).items():
        if way is not None:
            counted = [known.links[link][0].host for link in known.crossed(*pair)]
            assert counted == [named(end) for end in way if named(end) in rated(yard)]


@settings(max_examples=60, deadline=None)
@given(yards(), st.sampled_from(["fifo", "sebf", "sincronia", "las"]))
def test_at_every_link_whoever_is_ordered_first_is_served_first(yard: Yard, policy: str) -> None:
    made = plan(yard.shot, None, policy=make(policy))
    ways = followed(yard)

    def places(job: Job) -> set[object]:
        pairs = [(d.src, d.dst) for d in job.demand if d.bytes] + [(f.src, f.dst) for f in job.flows]
        found: set[object] = {("out", src) for src, _ in pairs} | {("in", dst) for _, dst in pairs}
        found |= {end for pair in pairs for end in ways[pair] or () if named(end) in rated(yard)}
        return found

    at = {job.id: places(job) for job in yard.shot.jobs}
    chain = longest_chain(made.ordering.bands, at)
    pairs = [
        (first, second)
        for one, other in itertools.combinations(made.ordering.bands, 2)
        for first in one
        for second in other
        if at[first] & at[second]
    ]
    if chain <= yard.shot.classes:
        assert all(made.classes[first] < made.classes[second] for first, second in pairs)
    else:
        assert all(made.classes[first] <= made.classes[second] for first, second in pairs)
    numbers = port_numbers(yard.shot.hosts, yard.shot.routes)
    shared = as_shared({job.id: numbers.used_by(job).tolist() for job in yard.shot.jobs})
    assert inversions(made.ordering, made.classes, shared) == sum(
        made.classes[first] >= made.classes[second] for first, second in pairs
    )


def longest_chain(bands: tuple[tuple[str, ...], ...], at: dict[str, set[object]]) -> int:
    """The most classes that could be needed, jobs of a band that meet counting as one."""
    before: list[set[object]] = []
    depth: list[int] = []
    for band in bands:
        meeting = nx.Graph()
        meeting.add_nodes_from(band)
        meeting.add_edges_from((a, b) for a, b in itertools.combinations(band, 2) if at[a] & at[b])
        here = [set().union(*(at[job] for job in group)) for group in nx.connected_components(meeting)]
        layers = [
            max((d for d, other in zip(depth, before, strict=True) if other & one), default=0) + 1 for one in here
        ]
        before, depth = before + here, depth + layers
    return max(depth, default=0)


@settings(max_examples=100, deadline=None)
@given(yards())
def test_the_loads_of_links_are_their_bytes_over_their_rates(yard: Yard) -> None:
    numbers = port_numbers(yard.shot.hosts, yard.shot.routes)
    loads = loads_left(yard.shot, load_matrix(yard.shot)).to_array()
    ways = followed(yard)
    rates = {
        end: link.rate_bps
        for link in yard.links
        for end in ((link.a, link.a_port), (link.b, link.b_port))
        if link.rate_bps is not None
    }
    number = {numbers.port(n): n for n in range(len(numbers))}
    assert len(number) == len(numbers) == loads.shape[1]
    for row, job in zip(loads, yard.shot.jobs, strict=True):
        for end, rate in rates.items():
            sizes = [d.bytes for d in job.demand if end in (ways[d.src, d.dst] or ())]
            assert row[number[Port(named(end), Direction.EGRESS)]] == pytest.approx(sum(sizes) * 8 / rate)
