"""TensorLights at one host: bands, turns, and how what is there becomes what is wanted; on values alone."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from controller.model import CLASS_DSCP, Demand, Host, Job, Role, Snapshot, Task
from controller.policies.tensorlights_one import TensorLightsOne
from controller.policies.tensorlights_rr import TensorLightsRr
from host_reporter.nic.tensorlights import BANDS, Server, band_queues
from host_reporter.nic.tensorlights_tree import (
    NOTHING,
    OTHERS_PREF,
    PORTS_PREF,
    DropFilter,
    DropFilters,
    DropLeaf,
    Filter,
    Lead,
    LeadOthers,
    Lights,
    PutLeaf,
    Seen,
    changes,
    lights,
    removal,
)
from host_reporter.nic.tree import htb_tree

SIZES = (1e6, 2e6, 3e6)
turns = st.integers(0, 10_000)


@st.composite
def servers(draw, least: int = 0, most: int = 30, sizes: tuple[float, ...] = SIZES) -> list[Server]:
    count = draw(st.integers(least, most))
    return [
        Server(f"job{n:03d}", (20_000 + n,), draw(st.sampled_from(sizes)), draw(st.floats(0, 100)))
        for n in range(count)
    ]


@given(servers(), st.one_of(st.none(), turns))
def test_of_n_jobs_rank_r_is_in_band_r_over_the_width(those: list[Server], turn: int | None) -> None:
    found = band_queues(those, turn)
    if len(those) < 2:
        assert found == {}, "one job alone has nobody to be ordered against"
        return
    width = math.ceil(len(those) / BANDS)
    assert set(found) == {one.job for one in those}
    assert len(set(found.values())) == len(found), "a place each"
    assert sorted(place.band * width + place.number for place in found.values()) == list(range(len(those)))
    assert max(place.band for place in found.values()) < BANDS


@given(servers(least=2), turns)
def test_a_smaller_model_is_never_behind_a_larger_one_and_only_equals_change_places(
    those: list[Server], turn: int
) -> None:
    fixed, turned = band_queues(those, None), band_queues(those, turn)
    by_rank = sorted(those, key=lambda one: turned[one.job])
    assert [one.model_bytes for one in by_rank] == sorted(one.model_bytes for one in those)
    for size in {one.model_bytes for one in those}:
        equals = [one.job for one in those if one.model_bytes == size]
        assert {fixed[job] for job in equals} == {turned[job] for job in equals}


@given(servers(least=2, most=20, sizes=(1e6,)))
def test_equals_all_have_every_place_for_as_long(those: list[Server]) -> None:
    held = {one.job: Counter() for one in those}
    for turn in range(len(those)):
        for job, place in band_queues(those, turn).items():
            held[job][place] += 1
    assert all(set(places_of.values()) == {1} and len(places_of) == len(those) for places_of in held.values())


@given(servers(least=2, most=20), turns)
def test_the_controllers_policy_says_the_same(those: list[Server], turn: int) -> None:
    """Two homes of one rule: a host's own, and the controller's for all hosts."""
    hosts = {name: Host(name) for name in ("ps", "w1", "w2")}
    jobs = tuple(
        Job(
            one.job,
            demand=tuple(Demand("ps", worker, one.model_bytes) for worker in ("w1", "w2")),
            arrival=one.launched,
            tasks=(Task(Role.PS, "ps", one.ports[0]), Task(Role.WORKER, "w1"), Task(Role.WORKER, "w2")),
        )
        for one in those
    )
    for policy, at in ((TensorLightsOne(), None), (TensorLightsRr(rotate_seconds=20.0), turn)):
        snapshot = Snapshot(now=(at or 0) * 20.0 + 5.0, hosts=hosts, jobs=jobs)
        ordering = policy.order(snapshot, None)
        said = {job: number for number, band in enumerate(ordering.bands) for job in band}
        assert said == {job: place.band for job, place in band_queues(those, at).items()}


class Interface:
    """A model of the interface: what the kernel would refuse raises, and packets that wait in a leaf are counted."""

    def __init__(self) -> None:
        self.leaves: dict[int, int] = {}
        self.bands: dict[int, int] = {}
        self.filters: dict[int, tuple[int | None, int]] = {}
        self.prefs: set[int] = set()
        self.handles = 0x801 << 20
        self.dropped = 0

    def seen(self) -> Seen:
        filters = tuple(Filter(handle, port, leaf) for handle, (port, leaf) in self.filters.items())
        return Seen(dict(self.leaves), filters, frozenset(self.prefs))

    def make(self, change) -> None:
        match change:
            case PutLeaf(leaf, band):
                assert self.bands.setdefault(leaf, band) == band, "a leaf that is backlogged cannot change its band"
                self.leaves.setdefault(leaf, 0)
            case Lead(port, leaf, handle):
                assert leaf in self.leaves
                if handle is None:
                    self.handles += 1
                    handle = self.handles
                else:
                    assert self.filters[handle][0] == port
                self.filters[handle] = (port, leaf)
                self.prefs.add(PORTS_PREF)
            case LeadOthers():
                assert OTHERS_PREF not in self.prefs
                self.prefs.add(OTHERS_PREF)
            case DropFilter(handle):
                del self.filters[handle]
            case DropFilters(pref):
                self.prefs.remove(pref)
                if pref == PORTS_PREF:
                    self.filters.clear()
            case DropLeaf(leaf):
                assert all(leaf != led for _, led in self.filters.values()), "the kernel refuses: a filter leads there"
                self.dropped += self.leaves.pop(leaf)
                self.bands.pop(leaf)

    def leads(self) -> dict[int, int]:
        return {port: leaf for port, leaf in self.filters.values() if port is not None}


@given(st.lists(st.tuples(servers(least=2), turns), min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_whatever_is_there_becomes_what_is_wanted_and_no_packet_is_dropped(steps, random) -> None:
    interface = Interface()
    for those, turn in steps:
        wanted = lights(those, band_queues(those, turn))
        for change in changes(wanted, interface.seen(), anew=random.random() < 0.3):
            interface.make(change)
        assert interface.leads() == wanted.ports
        assert len(interface.filters) == len(wanted.ports), "a filter a port"
        assert interface.prefs == {PORTS_PREF, OTHERS_PREF}
        assert wanted.leaves.items() <= interface.bands.items()
        assert changes(wanted, interface.seen(), anew=False) == [
            DropLeaf(leaf)
            for leaf in sorted(interface.leaves)
            if leaf not in wanted.leaves and not interface.leaves[leaf]
        ]
        for leaf in interface.leaves:
            interface.leaves[leaf] = random.choice((0, 1500))
        assert interface.dropped == 0
    for change in removal(interface.seen()):
        interface.make(change)
    assert interface.seen() == NOTHING


@given(servers(least=2), turns, turns)
def test_a_rotation_replaces_filters_and_nothing_else(those: list[Server], first: int, second: int) -> None:
    interface = Interface()
    for change in changes(lights(those, band_queues(those, first)), NOTHING, anew=True):
        interface.make(change)
    for leaf in interface.leaves:
        interface.leaves[leaf] = 3000
    made = changes(lights(those, band_queues(those, second)), interface.seen(), anew=False)
    assert all(isinstance(change, Lead) and change.handle is not None for change in made)


@given(st.lists(st.tuples(st.one_of(st.none(), st.integers(1, 50)), st.integers(0x1000, 0x1010)), max_size=20))
def test_filters_that_nobody_wants_are_taken_away(strange) -> None:
    interface = Interface()
    for number, (port, leaf) in enumerate(strange):
        interface.leaves[leaf] = 0
        interface.filters[number] = (port, leaf)
    wanted = Lights({0x1000: 0, 0x1100: 1}, {7: 0x1000, 8: 0x1100})
    for change in changes(wanted, interface.seen(), anew=True):
        interface.bands.pop(getattr(change, "leaf", None), None)
        if isinstance(change, DropLeaf):
            interface.bands[change.leaf] = 0
        interface.make(change)
    assert sorted(interface.filters.values()) == [(7, 0x1000), (8, 0x1100)]


def test_the_dscps_of_the_classes_stand_behind_the_servers_ports() -> None:
    prefs = {
        int(line.split(" prio ")[1].split()[0])
        for line in htb_tree("eth0", 1e8, CLASS_DSCP, 0.01, 0.1)
        if "filter" in line
    }
    assert PORTS_PREF < OTHERS_PREF < min(prefs)
