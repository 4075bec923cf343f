"""Marks of whole jobs: by cgroup where the kernel can, else by links, else on sockets; and what a job file may name."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from controller.code_points import CLASS_SELECTORS, POOL_2, CodePoints
from controller.wire import HostPlan, Mark
from host_reporter.discovery import cgroups
from host_reporter.discovery.cgroups import CgroupId
from host_reporter.discovery.packet_sources import PacketSources
from host_reporter.discovery.sockets.links import Link
from host_reporter.jobs.job import JobProcesses
from host_reporter.jobs.job_file import JobFile, JobFileError, read_job_file
from host_reporter.marking.enforcement import Enforcement
from host_reporter.marking.iptables import IptablesError, Marker
from host_reporter.marking.marks_here import MAX_LINK_MARKS, by_group, by_link
from host_reporter.marking.outer_headers import NO_TUNNELS, Outer
from host_reporter.marking.rules_text import (
    CHAIN,
    GENERATIONS,
    AnyMark,
    GroupMark,
    MarkError,
    Sent,
    new_classes,
    switch_over,
)
from host_reporter.notices import Notices

PEER = socket.inet_aton("10.0.0.2")
WHOLE = Mark(job="a", service_class=0, dscp=59)
PORT = Mark(job="b", service_class=1, dscp=51, local_port=5000, remote="10.0.0.3")
GROUP = CgroupId("/jobs/a", 44)
BOTH = PacketSources(frozenset("a"), {"a": GROUP}, {"a": frozenset({Link(PEER, 40_000, 5000), Link(PEER, None, 6000)})})
LINKS = PacketSources(frozenset("a"), {}, BOTH.links)


class Filters(Marker):
    """Notes what it is to mark. ``refuses``: GroupMarks alone, or everything."""

    def __init__(self, refuses: str = "") -> None:
        super().__init__()
        self.refuses = refuses
        self.marks: tuple[AnyMark, ...] = ()
        self.points = POOL_2
        self.applied = 0

    def apply(self, marks: Sequence[AnyMark], points: CodePoints, _outer: Outer = NO_TUNNELS) -> None:
        if self.refuses == "all" or (self.refuses == "groups" and any(isinstance(mark, GroupMark) for mark in marks)):
            raise IptablesError(f"{self.refuses} refused")
        self.marks, self.points, self.applied = tuple(marks), points, self.applied + 1

    def why_no_groups(self) -> str | None:
        return "groups refused" if self.refuses == "groups" else None

    def sent_bytes(self) -> Mapping[str, Sent]:
        return {"a": Sent(10), "b": Sent(20)}

    def open(self) -> None:
        self.marks = ()

    def remove(self) -> None:
        self.marks = ()


class Host:
    def __init__(self, refuses: str = "") -> None:
        self.filters = Filters(refuses)
        self.sockets: tuple[dict[str, int], set[str]] = ({}, set())
        self.points = POOL_2
        self.enforcement = Enforcement(
            self.filters, None, Notices(logging.getLogger("test")), mark_sockets=self._mark_sockets
        )

    def _mark_sockets(
        self, dscps: Mapping[str, int], everywhere: Iterable[str], points: CodePoints | None, over_ipv6: Iterable[str]
    ) -> None:
        self.sockets = (dict(dscps), set(everywhere))
        self.over_ipv6 = set(over_ipv6)
        self.points = points or self.points


def plan(*marks: Mark, **more: Any) -> HostPlan:
    return HostPlan(
        host="h1", epoch=1, policy="fifo", mode="marked", class_floor=0.01, other_floor=0.1, egress_bps=1e9,
        marks=marks, **{"class_dscp": (59, 51)} | more,
    )  # fmt: skip


def link_marks(job: str = "a", dscp: int = 59) -> set[tuple[Any, ...]]:
    return {(job, dscp, 40_000, "10.0.0.2", 5000), (job, dscp, None, "10.0.0.2", 6000)}


def as_tuples(marks: Iterable[AnyMark]) -> set[tuple[Any, ...]]:
    return {
        (mark.job, mark.dscp, mark.local_port, mark.remote, mark.remote_port)
        for mark in marks
        if isinstance(mark, Mark) and mark.job == "a"
    }


def test_a_whole_job_is_marked_by_its_cgroup_before_all_ports() -> None:
    host = Host()
    host.enforcement.set_sources(BOTH)
    assert host.enforcement.apply(plan(PORT, WHOLE))
    assert host.filters.marks == (GroupMark("a", 59, GROUP), PORT)
    # Only where no filter of ours sees the packets; see Discovery.
    assert host.sockets == ({"a": 59}, set())


def test_connections_that_are_older_than_the_cgroup_are_marked_by_their_ports_beside_it() -> None:
    host = Host()
    brought = Link(PEER, 40_009, 7000)
    host.enforcement.set_sources(BOTH)
    assert host.enforcement.apply(plan(PORT, WHOLE))
    host.enforcement.set_sources(PacketSources(BOTH.jobs, BOTH.groups, BOTH.links, {"a": frozenset({brought})}))
    assert host.filters.marks[0] == GroupMark("a", 59, GROUP)
    assert as_tuples(host.filters.marks) == {("a", 59, 40_009, "10.0.0.2", 7000)}
    host.enforcement.set_sources(BOTH)
    assert host.filters.marks == (GroupMark("a", 59, GROUP), PORT)


def test_new_connections_of_a_job_with_a_cgroup_change_no_rule() -> None:
    host = Host()
    host.enforcement.set_sources(BOTH)
    host.enforcement.apply(plan(WHOLE))
    host.enforcement.set_sources(PacketSources(BOTH.jobs, BOTH.groups, {"a": frozenset()}))
    assert host.filters.applied == 1
    # Another group in the first one's place does: the rule is of that which is gone.
    host.enforcement.set_sources(PacketSources(BOTH.jobs, {"a": CgroupId("/jobs/a", 45)}, {}))
    assert host.filters.marks == (GroupMark("a", 59, CgroupId("/jobs/a", 45)),)


def test_a_job_without_a_cgroup_is_marked_by_its_links_as_they_come_and_go() -> None:
    host = Host()
    host.enforcement.set_sources(LINKS)
    host.enforcement.apply(plan(WHOLE, PORT))
    assert as_tuples(host.filters.marks) == link_marks()
    host.enforcement.set_sources(PacketSources(LINKS.jobs, {}, {"a": frozenset({Link(PEER, None, 6000)})}))
    assert as_tuples(host.filters.marks) == {("a", 59, None, "10.0.0.2", 6000)}
    assert PORT in host.filters.marks


def test_a_kernel_that_matches_no_cgroups_is_said_once_and_links_are_marked(caplog: pytest.LogCaptureFixture) -> None:
    host = Host("groups")
    host.enforcement.set_sources(BOTH)
    for _ in range(3):
        assert host.enforcement.apply(plan(WHOLE), look=False)
    assert as_tuples(host.filters.marks) == link_marks()
    assert caplog.text.count("not matched by their cgroup") == 1
    # It is tried again at times: the group may just have gone.
    host.filters.refuses = ""
    assert host.enforcement.apply(plan(WHOLE), look=True)
    assert host.filters.marks == (GroupMark("a", 59, GROUP),)


def test_a_group_that_is_gone_costs_its_own_job_alone_the_mark_by_cgroup(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The filter refuses a path that is not there; the kernel can match cgroups all the same."""

    class Refusing(Filters):
        def apply(self, marks: Sequence[AnyMark], points: CodePoints, _outer: Outer = NO_TUNNELS) -> None:
            if any(isinstance(mark, GroupMark) and mark.group == GROUP for mark in marks):
                raise IptablesError("No such file or directory")
            super().apply(marks, points)

    host, stays = Host(), CgroupId("/jobs/b", 45)
    filters = Refusing()
    host.enforcement = Enforcement(
        filters, None, Notices(logging.getLogger("test")), is_there=lambda group: group == stays
    )
    both = PacketSources(frozenset("ab"), {"a": GROUP, "b": stays}, BOTH.links)
    host.enforcement.set_sources(both)
    other = WHOLE.model_copy(update={"job": "b"})
    assert host.enforcement.apply(plan(WHOLE, other), look=False)
    assert filters.marks[0] == GroupMark("b", 59, stays)
    assert as_tuples(filters.marks) == link_marks()
    # Its successor is marked at once, not only when the kernel is asked again.
    after = CgroupId("/jobs/a", 46)
    host.enforcement.set_sources(PacketSources(both.jobs, {"a": after, "b": stays}, BOTH.links))
    assert filters.marks == (GroupMark("a", 59, after), GroupMark("b", 59, stays))
    assert not caplog.records


def test_a_refusal_that_is_not_the_kernels_is_tried_again_soon() -> None:
    class Marking(Filters):
        is_marking = True

        def changed(self) -> tuple[str, ...]:
            return ()

        def why_no_groups(self) -> str | None:
            return None

    filters = Marking("groups")
    host = Enforcement(filters, None, Notices(logging.getLogger("test")), is_there=lambda _group: True)
    host.set_sources(BOTH)
    assert host.apply(plan(WHOLE), look=False)
    assert as_tuples(filters.marks) == link_marks()
    filters.refuses = ""
    host.reconcile()
    assert filters.marks == (GroupMark("a", 59, GROUP),)


def test_the_dscps_of_the_plan_reach_whoever_marks(caplog: pytest.LogCaptureFixture) -> None:
    host = Host()
    shared = {"class_dscp": (56, 48), "acknowledgement_dscp": None, "exclusive_dscp": ()}
    host.enforcement.set_sources(BOTH)
    host.enforcement.apply(plan(WHOLE, **shared))
    assert host.filters.points == host.points == CLASS_SELECTORS.first(2)
    # Of other programs' DSCPs only what a cgroup sends is cleared: that a job has none is told.
    assert "is not cleared" not in caplog.text
    with caplog.at_level(logging.INFO):
        host.enforcement.apply(plan(WHOLE, PORT, **shared))
    assert "these jobs' programs set themselves is not cleared" in caplog.text and "apart: b; run" in caplog.text
    # A controller of an earlier version says nothing of them.
    caplog.clear()
    host.enforcement.apply(plan(WHOLE, PORT))
    assert host.filters.points == host.points == POOL_2.first(2)
    host.enforcement.remove()
    assert host.points == POOL_2.first(2) and "cleared" not in caplog.text


def test_without_iptables_sockets_are_marked_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    host = Host("all")
    host.enforcement.set_sources(BOTH)
    assert not host.enforcement.apply(plan(WHOLE))
    assert host.sockets == ({"a": 59}, {"a"})
    assert "one by one" in caplog.text
    # Each new connection is marked, and iptables is not tried again for it.
    host.filters.refuses = ""
    host.enforcement.set_sources(LINKS)
    assert host.sockets == ({"a": 59}, {"a"}) and host.filters.applied == 0
    assert host.enforcement.apply(plan(WHOLE))
    assert host.sockets == ({"a": 59}, set()) and host.filters.applied == 1
    host.enforcement.open()
    assert host.sockets == ({}, set())


def test_nothing_is_marked_for_a_job_whose_file_is_gone() -> None:
    host = Host()
    host.enforcement.apply(plan(WHOLE, PORT))
    assert host.filters.marks == (PORT,)
    assert host.sockets == ({}, set())


def test_bytes_of_jobs_whose_sockets_are_found_are_counted_there_alone() -> None:
    host = Host()
    assert set(host.enforcement.sent_bytes()) == {"a", "b"}
    host.enforcement.set_sources(BOTH)
    assert set(host.enforcement.sent_bytes()) == {"b"}


def test_too_many_links_are_left_out_and_told() -> None:
    many = frozenset(Link(PEER, n, n) for n in range(1, MAX_LINK_MARKS + 11))
    limited = by_link([WHOLE, PORT], PacketSources(frozenset("a"), {}, {"a": many}))
    assert (len(limited.marks), limited.left_out) == (MAX_LINK_MARKS + 1, 10)
    assert by_group([WHOLE], BOTH).grouped == 1


# As iptables' text ---------------------------------------------------------------------------------------------------


def test_a_cgroup_is_one_quoted_word_of_the_text() -> None:
    odd = GroupMark("a", 59, CgroupId(r"/system.slice/a job\x2d1.service", 7))
    text = switch_over((odd, PORT), 0, jump=True)
    line = next(line for line in text.splitlines() if "cgroup" in line)
    assert (
        line == rf'-A {GENERATIONS[0]} -p tcp -m cgroup --path "/system.slice/a job\\x2d1.service" -g {GENERATIONS[0]}0'
    )
    assert text.count(f"-A {GENERATIONS[0]} ") == 2


@pytest.mark.parametrize("path", ["/", "", '/a" -j ACCEPT', "/a\n-A OUTPUT -j DROP", "/a\0"])
def test_a_path_that_could_be_more_than_one_word_is_refused(path: str) -> None:
    with pytest.raises(MarkError, match="no cgroup"):
        switch_over((GroupMark("a", 59, CgroupId(path, 7)),), 0, jump=True)


def test_a_mark_of_everything_never_becomes_a_rule() -> None:
    with pytest.raises(MarkError, match="all traffic"):
        switch_over((WHOLE,), 0, jump=True)


def test_another_class_changes_one_rule_and_another_group_all() -> None:
    before, after = (GroupMark("a", 59, GROUP), PORT), (GroupMark("a", 51, GROUP), PORT)
    text = new_classes(before, after, 0)
    assert text is not None and text.count("-R ") == 1 and f"{CHAIN}-A0 1 -j DSCP --set-dscp 51" in text
    assert new_classes(before, (GroupMark("a", 59, CgroupId("/jobs/a", 45)), PORT), 0) is None


# Job files -----------------------------------------------------------------------------------------------------------


def read(text: str) -> JobFile:
    return read_job_file(Path("/jobs.d/a.yaml"), text, Path("/run/progress"))


def test_a_job_file_may_name_a_cgroup_a_process_or_its_file() -> None:
    source = Path("/jobs.d/a.yaml")
    assert read("id: a\n").processes is None
    assert read("id: a\ncgroup: /system.slice/a.service/\n").processes == JobProcesses(
        source, cgroup="/system.slice/a.service"
    )
    assert read("id: a\npid: 4711\n").processes == JobProcesses(source, pid=4711)
    assert read("id: a\npidfile: a.pid\n").processes == JobProcesses(
        Path("/jobs.d/a.pid"), pidfile=Path("/jobs.d/a.pid")
    )
    assert read("id: a\npidfile: /run/a.pid\n").processes == JobProcesses(
        Path("/run/a.pid"), pidfile=Path("/run/a.pid")
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cgroup: /", "root of the hierarchy"),
        ("cgroup: jobs/a", "from the hierarchy's root"),
        ("cgroup: /a/../b", "from the hierarchy's root"),
        ("cgroup: '/a\"b'", "from the hierarchy's root"),
        ('cgroup: "/a\\nb"', "from the hierarchy's root"),
        (f"cgroup: /{'a' * 600}", "500"),
        ("cgroup: [a]", "string"),
        ("pid: 1", "greater than or equal to 2"),
        ("pid: '12'", "integer"),
        ("pid: true", "integer"),
        ("pidfile: ''", "no file"),
        ("pid: 12\ncgroup: /a", "one of cgroup, pid and pidfile"),
    ],
)
def test_a_place_that_cannot_be_is_refused_with_its_field(text: str, problem: str) -> None:
    with pytest.raises(JobFileError, match=problem):
        read(f"id: a\n{text}\n")


# Hierarchies ---------------------------------------------------------------------------------------------------------

MOUNTS = r"""
24 30 0:22 / /sys rw,nosuid - sysfs sysfs rw
30 24 0:26 /pod\0401 /sys/fs/cgroup/uni\040fied rw,nosuid - cgroup2 cgroup2 rw
31 24 0:27 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
nonsense
"""


def test_hierarchies_are_read_from_the_mounts() -> None:
    assert cgroups.parse_mounts(MOUNTS) == [
        cgroups.Hierarchy(Path("/sys/fs/cgroup/uni fied"), "/pod 1", True),
        cgroups.Hierarchy(Path("/sys/fs/cgroup/cpu"), "/", False),
    ]


def test_a_group_is_found_by_its_path_or_its_folder(tmp_path: Path) -> None:
    (tmp_path / "second" / "jobs" / "a" / "kid").mkdir(parents=True)
    (tmp_path / "first" / "old").mkdir(parents=True)
    (tmp_path / "second" / "jobs" / "a" / "cgroup.procs").write_text("12\n0\n")
    (tmp_path / "second" / "jobs" / "a" / "kid" / "cgroup.procs").write_text("13\n")
    mounted = (
        cgroups.Hierarchy(tmp_path / "second", "/", True),
        cgroups.Hierarchy(tmp_path / "first", "/", False),
    )
    group_found = cgroups.find("/jobs/a", mounted)
    assert (
        group_found is not None
        and group_found.path == "/jobs/a"
        and group_found.id == (tmp_path / "second/jobs/a").stat().st_ino
    )
    assert cgroups.find(str(tmp_path / "second" / "jobs" / "a"), mounted) == group_found
    assert cgroups.ids(group_found) == {group_found.id, (tmp_path / "second/jobs/a/kid").stat().st_ino}
    assert cgroups.pids(group_found) == {12, 13}
    old = cgroups.find("/old", mounted)
    assert old is not None and old.id == 0 and cgroups.ids(old) == set()
    assert cgroups.find("/jobs/b", mounted) is None
    assert cgroups.find(str(tmp_path / "second"), mounted) is None, "the root holds every process"
    # In a container the hierarchy's root may be a group itself.
    within = (cgroups.Hierarchy(tmp_path / "second", "/pod", True),)
    inner = cgroups.find("/pod/jobs/a", within)
    assert inner is not None and inner.path == "/pod/jobs/a"
