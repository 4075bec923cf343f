"""What the check says of job files, of what only has the name of one, and of what they follow."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from host_reporter.check import job_files
from host_reporter.check.verdict import Verdict
from host_reporter.options import read_options


def verdicts(folder: Path) -> list[Verdict]:
    return list(job_files.check(read_options(["--host", "h1", "--jobs", str(folder)], {})))


def job(folder: Path, log: str) -> None:
    (folder / "a.json").write_text(json.dumps({"id": "a", "spec": {}, "progress": {"log": log}}))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (Path.mkdir, "it is a folder, and no file"),
        (os.mkfifo, "it is a named pipe, and no file"),
        (lambda path: path.symlink_to("nowhere"), "it is a link to a file that is not there"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a device, and no file"),
        (lambda path: path.symlink_to(path.name), "it cannot be read"),
    ],
)
def test_what_only_has_the_name_of_a_job_file(tmp_path: Path, make: Callable[[Path], None], reason: str) -> None:
    make(tmp_path / "b.yaml")
    job(tmp_path, str(tmp_path / "log"))
    bad, good = sorted(verdicts(tmp_path), key=lambda verdict: verdict.state == "ok")
    assert bad.state == "missing" and f"{tmp_path}/b.yaml: {reason}" in bad.text
    assert good.state == "ok" and "not there yet" in good.text


@pytest.mark.parametrize(("log", "state"), [("/dev/zero", "missing"), ("/dev/null", "missing"), ("file", "ok")])
def test_what_a_job_follows(tmp_path: Path, log: str, state: str) -> None:
    (tmp_path / "file").write_text("")
    job(tmp_path, str(tmp_path / log))
    (verdict,) = verdicts(tmp_path)
    assert verdict.state == state
    assert ("which is no ordinary file" in verdict.text) == (state == "missing")
