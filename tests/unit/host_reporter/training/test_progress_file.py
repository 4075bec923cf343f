"""The two lines for a training script: never an exception, never a wait, never another file harmed."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evaluation.bench.support.waiting import wait_until
from host_reporter import ProgressFile, progress
from host_reporter.readers.parse import Ended, Event, Point, json_parser


def _records(file: ProgressFile) -> list[Event | None]:
    file.flush(10.0)
    return [json_parser(line) for line in Path(file.path).read_text().splitlines()]


def test_the_two_lines(tmp_path: Path) -> None:
    script = "from host_reporter import progress\nprogress('my-job').report(iteration=12, metric=0.81)"
    environment = os.environ | {"TRAINYARD_PROGRESS_DIR": str(tmp_path / "new")}
    subprocess.run([sys.executable, "-c", script], env=environment, check=True, timeout=30)
    (line,) = (tmp_path / "new" / "my-job.jsonl").read_text().splitlines()
    record = json.loads(line)
    assert (record["iteration"], record["metric"]) == (12.0, 0.81)
    assert abs(record["time"] - time.time()) < 60


def test_records_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = ProgressFile("a", tmp_path)
    file.report(iteration=1, metric=0.5, time=1000.0)
    file.report(iteration="2", metric=math.nan, time=1001)
    file.end()
    assert _records(file) == [Point(1.0, 0.5, 1000.0), Point(2.0, None, 1001.0, diverged=True), Ended()]
    assert file.dropped == 0


@pytest.mark.parametrize("value", [None, "many", math.nan, math.inf, -math.inf, 10**400, object(), [1]])
def test_what_is_no_number_is_dropped_and_counted(tmp_path: Path, value: object) -> None:
    file = ProgressFile("a", tmp_path)
    file.report(iteration=value)  # type: ignore[arg-type]  # what a training script may hand over by mistake
    file.report(iteration=1, time=5.0)
    assert _records(file) == [Point(1.0, None, 5.0)]
    assert file.dropped == 1


class Tensor:
    """Several elements, of which none is the one."""

    def __float__(self) -> float:
        raise RuntimeError("a tensor with 2 elements cannot be converted to a number")


@pytest.mark.parametrize("metric", [10**400, Tensor(), "high", object(), math.nan])
def test_a_metric_that_is_no_number_costs_the_metric_alone(tmp_path: Path, metric: object) -> None:
    file = ProgressFile("a", tmp_path)
    file.report(iteration=3, metric=metric, time=5.0)  # type: ignore[arg-type]  # as above
    diverged = isinstance(metric, float)
    assert _records(file) == [Point(3.0, None, 5.0, diverged=diverged)]
    assert file.dropped == 0


def test_a_report_from_a_signals_handler_waits_for_nothing(tmp_path: Path) -> None:
    """Also while the very first report is starting the thread."""
    script = (
        "import os, signal, threading\nfrom host_reporter import ProgressFile\n"
        f"file = ProgressFile('a', {str(tmp_path)!r})\n"
        "signal.signal(signal.SIGUSR1, lambda *_: file.report(iteration=2))\n"
        "class Interrupted(threading.Thread):\n"
        "    def start(self):\n"
        "        os.kill(os.getpid(), signal.SIGUSR1)\n"
        "        super().start()\n"
        "threading.Thread = Interrupted\n"
        "file.report(iteration=1)\nfile.flush(10.0)\nassert not file.dropped\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=30)
    records = [json_parser(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sorted(record.iteration for record in records if isinstance(record, Point)) == [1.0, 2.0]


@pytest.mark.parametrize("kind", ["file", "full", "link", "pipe", "nul", "up", "folder", "bytes"])
def test_a_place_that_cannot_be_written_costs_records_only(tmp_path: Path, kind: str) -> None:
    job, folder = "a", tmp_path
    target = tmp_path / "a.jsonl"
    if kind == "file":
        (tmp_path / "plain").touch()
        folder = tmp_path / "plain" / "sub"
    elif kind == "link":
        (tmp_path / "precious").touch()
        target.symlink_to("precious")
    elif kind == "pipe":
        os.mkfifo(target)
    elif kind == "folder":
        target.mkdir()
    elif kind in ("nul", "up"):
        job = {"nul": "a\0b", "up": "../../a"}[kind]
    file = ProgressFile(job, os.fsencode(folder) if kind == "bytes" else folder)
    if kind == "full":
        file.path = "/dev/full"

    def train() -> None:
        for i in range(10):
            file.report(iteration=i, metric=0.5)
        file.end()

    training = threading.Thread(target=train, daemon=True)
    training.start()
    wait_until(lambda: not training.is_alive(), what="the end of a training that nothing holds up")
    file.flush(10.0)
    assert file.dropped == (0 if kind == "bytes" else 11)
    if kind == "link":
        assert (tmp_path / "precious").read_bytes() == b"", "who may write into the folder leads nobody elsewhere"


def test_closed_descriptors_harm_no_other_file(tmp_path: Path) -> None:
    file = ProgressFile("a", tmp_path)
    file.report(iteration=1, time=1.0)
    file.flush(10.0)
    number = file._descriptor
    assert number is not None
    os.close(number)
    other = tmp_path / "precious"
    taken = os.open(other, os.O_WRONLY | os.O_CREAT)
    if taken != number:
        os.dup2(taken, number)
        os.close(taken)
    file.report(iteration=2, time=2.0)
    assert _records(file) == [Point(1.0, None, 1.0), Point(2.0, None, 2.0)]
    os.close(number)
    assert other.read_bytes() == b""
    assert file.dropped == 0


def test_a_forked_child_writes_for_itself(tmp_path: Path) -> None:
    script = (
        "import os\nfrom host_reporter import ProgressFile\n"
        f"file = ProgressFile('a', {str(tmp_path)!r})\nfile.report(iteration=1)\n"
        "child = os.fork()\nfile.report(iteration=2 + (child == 0))\nfile.flush(10.0)\n"
        "os._exit(0) if child == 0 else os.waitpid(child, 0)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=30)
    records = [json_parser(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert sorted(record.iteration for record in records if isinstance(record, Point)) == [1.0, 2.0, 3.0]


def test_a_report_costs_a_training_little_more_than_a_line_in_memory(tmp_path: Path) -> None:
    """The training hands a record to a thread; beside it, the same record becomes a line, which goes nowhere."""
    file = ProgressFile("a", tmp_path)
    report = line = math.inf
    for start in range(0, 5000, 500):
        began = time.perf_counter()
        for i in range(500):
            file.report(iteration=start + i, metric=0.5)
        report = min(report, time.perf_counter() - began)
        file.flush(10.0)
        began = time.perf_counter()
        for i in range(500):
            json.dumps({"time": time.time(), "iteration": float(start + i), "metric": 0.5}).encode()
        line = min(line, time.perf_counter() - began)
    assert report < 10 * line
    assert file.dropped == 0


def test_progress_gives_the_same_file_again_and_importing_it_is_light() -> None:
    assert progress("x") is progress("x")
    script = (
        "import sys\nimport host_reporter\n"
        "print([m for m in ('pydantic', 'yaml', 'numpy', 'controller', 'ssl') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)
    assert done.stdout == "[]\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="it takes root to be two users")
def test_where_another_user_has_the_name_the_file_has_the_users_number(tmp_path: Path) -> None:
    """Whoever makes the file of a job first must not silence the job of another user, nor read along."""
    script = (
        "import os, sys\nos.setuid(int(sys.argv[1]))\n"
        "from host_reporter import progress\nprogress('a').report(iteration=1)\n"
    )
    tmp_path.chmod(0o1777)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == 0 and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o755)
    environment = os.environ | {"TRAINYARD_PROGRESS_DIR": str(tmp_path)}
    for user in ("4242", "4343", "0"):
        subprocess.run([sys.executable, "-c", script, user], env=environment, check=True, timeout=30)
    (tmp_path / "a.jsonl").chmod(0o666)
    subprocess.run([sys.executable, "-c", script, "4343"], env=environment, check=True, timeout=30)
    owners = {path.name: (path.stat().st_uid, len(path.read_text().splitlines())) for path in tmp_path.iterdir()}
    assert owners == {"a.jsonl": (4242, 1), "a.4343.jsonl": (4343, 2), "a.0.jsonl": (0, 1)}
