"""TensorLights at one host: bands, turns, and how what is there becomes what is wanted; on values alone."""

from __future__ import annotations

import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from controller.code_points import POOL_2
from controller.model import Demand, Host, Job, Role, Snapshot, Task
from controller.policies.tensorlights_one import TensorLightsOne
from controller.policies.tensorlights_rr import TensorLightsRr
from host_reporter.nic.tensorlights.bands import BANDS, PLACES, Server, band_queues, places
from host_reporter.nic.tensorlights.changes import (
    DropFilter,
    DropFilters,
    DropLeaf,
    Inside,
    Lead,
    LeadOthers,
    PutBand,
    PutLeaf,
    changes,
    removal,
)
from host_reporter.nic.tensorlights.tree import (
    FIRST_PLACE,
    INNER_TREES,
    NOTHING,
    OTHERS_PREF,
    PORTS_PREF,
    Filter,
    Lights,
    Seen,
    is_leaf,
    lights,
    lights_in_places,
    queue_handle,
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


@given(servers(least=2, most=130), turns)
def test_a_job_alone_in_its_place_keeps_its_rank_and_no_place_has_more_jobs_than_it_must(
    those: list[Server], turn: int
) -> None:
    queues = band_queues(those, turn)
    found = places(queues)
    ranked = sorted(queues, key=queues.__getitem__)
    assert ranked == sorted(queues, key=lambda job: (queues[job].band, found[job]))
    sharing = Counter((queues[job].band, found[job].place) for job in queues)
    width = math.ceil(len(those) / BANDS)
    assert max(sharing.values()) == math.ceil(width / PLACES)
    assert max(place.place for place in found.values()) < PLACES
    assert len({(queues[job].band, found[job]) for job in queues}) == len(those)


def in_places(those: list[Server], turn: int) -> Lights:
    queues = band_queues(those, turn)
    return lights_in_places(those, queues, places(queues))


@given(servers(least=2, most=130), turns)
def test_inside_each_band_every_job_has_a_leaf_and_packets_without_a_filter_have_one(
    those: list[Server], turn: int
) -> None:
    wanted, queues = in_places(those, turn), band_queues(those, turn)
    assert set(wanted.leaves) == set(wanted.inside)
    assert len(set(wanted.leaves.values())) == len(wanted.leaves)
    led = [
        (wanted.leaves[wanted.ports[port]], wanted.inside[wanted.ports[port]].ports[port])
        for server in sorted(those, key=lambda server: queues[server.job])
        for port in server.ports
    ]
    assert led == sorted(set(led)), "in the order of their ranks, each with a leaf of its own"
    for tree in wanted.inside.values():
        assert FIRST_PLACE in tree.leaves
        assert set(tree.ports.values()) == set(tree.leaves)
        assert all(map(is_leaf, tree.leaves))


def test_no_two_queues_of_an_interface_have_one_handle() -> None:
    outer = [minor for minor in range(1 << 16) if is_leaf(minor)]
    inner = range(FIRST_PLACE, FIRST_PLACE + 0x100)
    handles = [queue_handle(0x7473, minor) for minor in outer]
    handles += [queue_handle(major, minor) for major in INNER_TREES for minor in inner]
    assert len(set(handles)) == len(handles)
    assert len(INNER_TREES) == BANDS
    assert set(INNER_TREES) <= set(handles)
    assert not {0x7472, 0x7473} & set(handles)
    assert max(handles) < 0x7500, "there the queues of the tree by DSCP begin, and from 0x8000 on the kernel's own"


class Interface:
    """A model of the interface: what the kernel would refuse raises, and packets that wait in a leaf are counted."""

    def __init__(self) -> None:
        self.leaves: dict[int, int] = {}
        self.bands: dict[int, int] = {}
        self.filters: dict[int, tuple[int | None, int]] = {}
        self.prefs: set[int] = set()
        self.handles = 0x801 << 20
        self.dropped = 0
        self.inside: dict[int, Interface] = {}

    def seen(self) -> Seen:
        filters = tuple(Filter(handle, port, leaf) for handle, (port, leaf) in self.filters.items())
        inside = {leaf: tree.seen() for leaf, tree in self.inside.items()}
        return Seen(dict(self.leaves), filters, frozenset(self.prefs), inside)

    def make(self, change) -> None:
        match change:
            case PutLeaf(leaf, band):
                assert self.bands.setdefault(leaf, band) == band, "a leaf that is backlogged cannot change its band"
                self.leaves.setdefault(leaf, 0)
            case PutBand(leaf, band, jobs, adds_tree):
                assert jobs > 0
                assert adds_tree == (leaf not in self.inside), "the kernel refuses to make a tree that is there"
                self.make(PutLeaf(leaf, band))
                self.inside.setdefault(leaf, Interface())
            case Inside(leaf, inner):
                self.inside[leaf].make(inner)
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
                if not self.filters:
                    self.prefs.discard(PORTS_PREF)
            case DropFilters(pref):
                self.prefs.remove(pref)
                if pref == PORTS_PREF:
                    self.filters.clear()
            case DropLeaf(leaf):
                assert all(leaf != led for _, led in self.filters.values()), "the kernel refuses: a filter leads there"
                self.dropped += self.leaves.pop(leaf)
                self.bands.pop(leaf)
                self.inside.pop(leaf, None)
            case _:
                raise AssertionError(change)

    def leads_on(self) -> bool:
        """Whether every packet that comes to a tree inside finds its filter there."""
        return all(port in self.inside[leaf].leads() for port, leaf in self.leads().items() if leaf in self.inside)

    def wait(self, random) -> None:
        """Let packets wait in some leaves."""
        for leaf in self.leaves:
            self.leaves[leaf] = random.choice((0, 1500))
        for leaf, tree in self.inside.items():
            tree.wait(random)
            self.leaves[leaf] = sum(tree.leaves.values())

    def lost(self) -> int:
        return self.dropped + sum(tree.lost() for tree in self.inside.values())

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


steps_in_places = st.lists(st.tuples(servers(least=2, most=70), turns, st.booleans()), min_size=1, max_size=5)


@given(steps_in_places, st.randoms(use_true_random=False))
def test_so_it_does_where_each_job_has_a_band_and_where_an_earlier_agent_let_them_share(steps, random) -> None:
    interface = Interface()
    for those, turn, is_shared in steps:
        wanted = lights(those, band_queues(those, turn)) if is_shared else in_places(those, turn)
        for change in changes(wanted, interface.seen(), anew=random.random() < 0.3):
            interface.make(change)
            assert interface.leads_on()
        assert interface.leads() == wanted.ports
        for leaf, tree in wanted.inside.items():
            inner = interface.inside[leaf]
            assert inner.leads() == tree.ports
            assert tree.leaves.items() <= inner.bands.items()
            assert not inner.prefs - {PORTS_PREF}
        again = changes(wanted, interface.seen(), anew=False)
        assert all(isinstance(change.change if isinstance(change, Inside) else change, DropLeaf) for change in again)
        interface.wait(random)
        assert interface.lost() == 0
    for change in removal(interface.seen()):
        interface.make(change)
    assert interface.seen() == NOTHING


@given(servers(least=2, most=70), turns)
def test_a_tree_inside_that_somebody_has_taken_away_comes_back_whole(those: list[Server], turn: int) -> None:
    interface, wanted = Interface(), in_places(those, turn)
    for change in changes(wanted, NOTHING, anew=True):
        interface.make(change)
    before = interface.seen()
    interface.inside.pop(min(interface.inside))
    for change in changes(wanted, interface.seen(), anew=True):
        interface.make(change)
    assert interface.seen().inside.keys() == before.inside.keys()
    assert changes(wanted, interface.seen(), anew=False) == []


@given(servers(least=2, most=70), turns, turns)
def test_a_rotation_of_places_touches_no_leaf(those: list[Server], first: int, second: int) -> None:
    interface = Interface()
    for change in changes(in_places(those, first), NOTHING, anew=True):
        interface.make(change)
    made = changes(in_places(those, second), interface.seen(), anew=False)
    moved = [change.change if isinstance(change, Inside) else change for change in made]
    assert all(isinstance(change, Lead | DropFilter) for change in moved)
    assert len(moved) <= 3 * len(those)


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
        int(line.split(" prio ")[1].split()[0]) for line in htb_tree("eth0", 1e8, POOL_2, 0.01, 0.1) if "filter" in line
    }
    assert PORTS_PREF < OTHERS_PREF < min(prefs)
