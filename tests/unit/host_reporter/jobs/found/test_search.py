"""How often the output of a job is looked for that has none so far, and what is said of it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from host_reporter.jobs.found.search import LOOK_BUDGET_SECONDS
from host_reporter.readers.whole import read_whole
from tests.support.agent.found import Finding
from tests.support.agent.started import started, unique


@pytest.fixture
def finding(tmp_path: Path) -> Finding:
    return Finding(tmp_path)


def searches(finding: Finding, looks: int, monkeypatch: pytest.MonkeyPatch, *, cost: float = 0.0) -> int:
    """Returns how often outputs are looked for in so many looks, a second apart. Each search takes ``cost`` seconds."""
    count = 0
    find = finding.outputs.find

    def counted(*arguments: object) -> object:
        nonlocal count
        count += 1
        until = time.thread_time() + cost
        while time.thread_time() < until:
            pass
        return find(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(finding.outputs, "find", counted)
        for _ in range(looks):
            finding.look(skip=1.0)
    return count


def test_often_in_the_first_minute_and_then_seldom(finding: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    with started({"TRAINYARD_JOB": unique()}):
        first = searches(finding, 58, monkeypatch)
        assert first >= 50
        searches(finding, 120, monkeypatch)
        assert searches(finding, 60, monkeypatch) <= 3


def test_searches_are_spread_over_looks(finding: Finding, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [unique() for _ in range(6)]
    jobs = [started({"TRAINYARD_JOB": name}) for name in names]
    for job in jobs:
        job.__enter__()
    try:
        finding.wait(lambda: len(finding.of(names)) == len(names))
        finding.look(skip=2.0)
        each = searches(finding, 1, monkeypatch, cost=LOOK_BUDGET_SECONDS * 0.6)
        assert each <= 2
        assert searches(finding, 2, monkeypatch, cost=LOOK_BUDGET_SECONDS * 0.6) >= 2, "the others have their turn then"
    finally:
        for job in jobs:
            job.__exit__(None, None, None)


@pytest.mark.parametrize(
    ("end", "what"),
    [
        ("exec >&-", "its standard output is closed"),
        ("exec >/dev/null", "/dev/null"),
        ("exec >/dev/zero", "may not be read by its user"),
    ],
)
def test_why_there_is_none(finding: Finding, end: str, what: str, caplog: pytest.LogCaptureFixture) -> None:
    name = unique()
    with started({"TRAINYARD_JOB": name}, ("sh", "-c", f"{end}; exec sleep 600")):
        finding.wait(lambda: finding.of([name]))
        for _ in range(10):
            finding.look(skip=5.0)
        assert f"{name}: no file has its output (it prints to" in caplog.text
        assert what in caplog.text


@pytest.mark.parametrize("option", ["-l", "-u"])
def test_ranks_that_mpiexec_labels_are_told_apart(finding: Finding, tmp_path: Path, option: str) -> None:
    shutil.copy("/bin/sh", tmp_path / "mpiexec")
    name, file = unique(), tmp_path / "out"
    file.write_text("".join(f"[{rank}] step {step} loss: {step}.{rank}\n" for step in (1, 2, 3) for rank in (0, 1)))
    command = (str(tmp_path / "mpiexec"), option, "-c", "(env PMI_RANK=0 PMI_SIZE=2 sleep 600) 2>&1 | cat")
    with file.open("ab") as out, started({"TRAINYARD_JOB": name}, command, out=out):
        finding.wait(lambda: any(finding.jobs[job].location is not None for job in finding.of([name])))
        (job,) = finding.of([name])
        finding.wait(lambda: finding.jobs[job].location.ranks_in_brackets or option == "-u")  # type: ignore[union-attr]
        (points,) = read_whole(finding.jobs[job].source()).runs
        if option == "-l":
            assert [(point.iteration, point.metric) for point in points] == [(1, 1.0), (2, 2.0), (3, 3.0)]
        else:
            location = finding.jobs[job].location
            assert location is not None and not location.ranks_in_brackets
