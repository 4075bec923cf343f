from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import eventlet

from controller.access.audit.files import files_of, lines_of
from controller.access.audit.log import TAIL, AuditLog
from controller.access.audit.verify import Verdict, Verifier
from evaluation.bench.support.waiting import wait_until


def verdict(path: Path) -> Verdict:
    verifier = Verifier()
    for file in files_of(path):
        verifier.add_file(file.name, lines_of(file))
    return verifier.verdict()


def log(path: Path | None, **more: Any) -> AuditLog:
    return AuditLog(path, **({"max_bytes": 2**20, "keep": None, "clock": time.time} | more))


def test_records_are_written_behind_the_caller_and_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    audit = log(path)
    audit.start()
    audit.add({"who": "ann"})
    wait_until(lambda: verdict(path).records == 2, sleep=eventlet.sleep)
    for n in range(2000):
        audit.add({"who": "bob", "after": {"n": n}})
    assert audit.stop()
    result = verdict(path)
    assert (result.breaks, result.records) == ((), 2002)
    assert result.last is not None
    assert (result.last.number, result.last.hash) == audit.head


def test_the_newest_records_are_in_memory_and_older_ones_in_the_files(tmp_path: Path) -> None:
    audit = log(tmp_path / "audit.jsonl", max_bytes=20_000)
    audit.start()
    for n in range(TAIL + 500):
        audit.add({"who": "ann", "after": {"n": n}})
    audit.stop()
    end = audit.head.number
    assert [each.number for each in audit.newest(3)] == [end - 2, end - 1, end]
    seen: list[int] = []
    while page := audit.since(seen[-1] if seen else 0, 300):
        seen += [each.number for each in page]
    assert seen == list(range(1, end + 1))


def test_without_a_file_the_newest_records_are_there() -> None:
    audit = log(None)
    audit.start()
    for n in range(TAIL + 10):
        audit.add({"who": "ann", "after": {"n": n}})
    assert [each.number for each in audit.since(0, 2)] == [11, 12]
    assert audit.stop()


def test_a_file_that_cannot_be_written_costs_memory_only_up_to_a_limit_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "later" / "audit.jsonl"
    audit = log(path, retry_seconds=0.02, waiting=10)
    audit.start()
    for n in range(25):
        audit.add({"who": "ann", "after": {"n": n}})
    wait_until(lambda: audit.failure is not None, sleep=eventlet.sleep)
    # The record that begins the file is one of those that wait.
    assert audit.problem is not None
    head, _, cause = audit.problem.partition(": ")
    assert head == "the audit file cannot be written", "the same whatever the numbers"
    assert cause.endswith("; 10 records wait, 16 were lost")
    path.parent.mkdir()
    wait_until(lambda: audit.failure is None, sleep=eventlet.sleep)
    assert audit.problem is None
    audit.add({"who": "ann", "after": {"n": "the next"}})
    assert audit.stop()
    result = verdict(path)
    assert result.breaks == ()
    assert "records before it were lost" in result.notes[0]
    last = json.loads(path.read_bytes().splitlines()[-1])
    assert last["lost"] == audit.lost


def test_records_that_wait_at_the_end_are_said(tmp_path: Path) -> None:
    audit = log(tmp_path / "none" / "audit.jsonl")
    audit.start()
    audit.add({"who": "ann"})
    assert not audit.stop()
