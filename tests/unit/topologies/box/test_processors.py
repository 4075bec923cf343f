"""A box has a processor of its own as long as there are enough."""

from __future__ import annotations

import os
import subprocess
import sys

from topologies.box.processors import at_once, own_processor, run_on


def test_each_has_another_and_who_comes_late_has_none(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: {3, 5})
    with own_processor() as one, own_processor() as two, own_processor() as three:
        assert {one, two} == {3, 5}
        assert three is None
    with own_processor() as again:
        assert again in {3, 5}


def test_a_process_and_its_children_stay_on_theirs():
    (processor, *_) = os.sched_getaffinity(0)
    script = "import os, sys; sys.stdin.readline(); os.system('grep Cpus_allowed_list /proc/self/status')"
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1, stdout=-1, text=True) as process:
        run_on(process.pid, processor)
        told, _ = process.communicate("go\n", timeout=60)
    assert told.split()[-1] == str(processor)


def test_a_process_that_is_gone_is_no_error():
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    run_on(process.pid, 0)


def test_who_must_not_wait_starts_and_this_process_stays_as_it_was():
    before = os.sched_getscheduler(0)
    subprocess.run([*at_once(), "true"], check=True)
    assert os.sched_getscheduler(0) == before


def test_without_the_right_it_is_as_much_priority_as_there_is(monkeypatch):
    def refuse(*_arguments):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    assert at_once() == ("nice", "-n", "-10")
