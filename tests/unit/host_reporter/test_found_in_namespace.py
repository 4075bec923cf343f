"""An agent in a PID namespace of its own finds the jobs there alone: so emulated hosts have agents that find jobs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from tests.support.agent.started import unique
from tests.support.lab import rank_traffic
from tests.support.lab.pid_namespace import PidNamespace


def popen(command: Sequence[str], **options: Any) -> subprocess.Popen[Any]:
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, **options)


@pytest.fixture
def spaces() -> Iterator[list[PidNamespace]]:
    with ExitStack() as stack:
        made = []
        for _ in range(2):
            made.append(PidNamespace(popen))
            stack.callback(made[-1].close)
        yield made


def start(space: PidNamespace, folder: Path, variables: dict[str, str]) -> tuple[subprocess.Popen[Any], Path, Path]:
    """Start a rank there. Returns it, its log, and the file that ends it."""
    log, release = folder / f"rank{variables['RANK']}.log", folder / "release"
    with log.open("wb") as out:
        command = space.inside(sys.executable, rank_traffic.__file__, str(release))
        return popen(command, stdout=out, stderr=out, env=os.environ | variables), log, release


def test_processes_of_a_namespace_see_each_other_alone(spaces: list[PidNamespace]) -> None:
    one, other = spaces
    seen = subprocess.check_output(one.inside("sh", "-c", "ls -d /proc/[0-9]*; readlink /proc/self"), text=True)
    names = seen.split()
    assert "/proc/1" in names and len(names) <= 4, "sleep, the shell and ls"
    assert Path.cwd() == Path(subprocess.check_output(other.inside("pwd"), text=True).strip())


def test_the_end_of_a_namespace_ends_all_that_runs_there() -> None:
    space = PidNamespace(popen)
    process = popen(space.inside("sleep", "600"))
    space.close()
    assert process.wait(60) != 0


def test_an_agent_finds_the_job_of_its_own_namespace(spaces: list[PidNamespace], tmp_path: Path) -> None:
    one, other = spaces
    run, server = unique(), ReporterServer()
    server.set_plan({})
    for name in ("progress", "jobs.d"):
        (tmp_path / name).mkdir()
    command = (
        sys.executable, "-m", "host_reporter.agent", "--controller", server.url, "--host", "h1", "--no-marking",
        "--jobs-dir", str(tmp_path / "jobs.d"), "--progress-dir", str(tmp_path / "progress"), "--period", "0.3",
    )  # fmt: skip
    said = tmp_path / "agent.log"
    with said.open("wb") as out:
        agent = popen(one.inside(*command), stdout=out, stderr=out)
    ranks = {"TORCHELASTIC_RUN_ID": run, "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1"}
    ranks |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    try:
        first, log, release = start(one, tmp_path, ranks | {"RANK": "0"})
        second, *_ = start(other, tmp_path, ranks | {"RANK": "1"})
        job = f"root.torchrun-{run}"
        wait_until(lambda: len(server.points.get(job, ())) > 2, 60, what=f"its progress: {said.read_text()}")
        spec = server.jobs[job]
        assert (spec.ranks, spec.world_size, spec.is_first) == (1, 2, True)  # type: ignore[union-attr]
        assert list(server.jobs) == [job], "those of the machine are not its own"
        assert "iter 3: loss" in log.read_text()
        release.touch()
        assert (first.wait(60), second.wait(60)) == (0, 0)
        wait_until(lambda: job in server.ended, 30, what="its end")
    finally:
        agent.kill()
        agent.wait()
        server.stop()
