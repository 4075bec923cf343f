"""Jobs' processes, real ones: trees, and ids that come again."""

from __future__ import annotations

import os

from evaluation.bench.support.hosts.job_process import JobProcess
from evaluation.bench.support.waiting import wait_until
from host_reporter import procfs
from host_reporter.discovery.processes import Tree
from host_reporter.procfs import Process


def test_a_process_is_its_id_and_its_start() -> None:
    mine = procfs.identify(os.getpid())
    assert mine is not None and procfs.is_alive(mine)
    assert not procfs.is_alive(Process(mine.pid, mine.started + 1))
    assert procfs.identify(2**22 + 5) is None


def test_children_are_found_also_when_their_parent_has_ended() -> None:
    with JobProcess() as job:
        root = procfs.identify(job.pid)
        assert root is not None
        tree = Tree(root)
        assert {process.pid for process in tree.look()} == {job.pid}
        child = job.do("fork")
        assert {process.pid for process in tree.look()} == {job.pid, child}
        grandchild = job.do("orphan")
        assert {process.pid for process in tree.look()} == {job.pid, child, grandchild}
        wait_until(lambda: {process.pid for process in tree.look()} == {grandchild})
    wait_until(lambda: tree.look() == frozenset())
