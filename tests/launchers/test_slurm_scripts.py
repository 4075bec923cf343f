"""The prolog and epilog that ship, run by a real Slurm, and by themselves where something is wrong."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.launchers.machine.users import User, somebody
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.slurm.scripts import SCRIPTS, SHIPPED, copy

DAY = 24 * 3600


def run(script: Path) -> str:
    """Run a script of Slurm's as Slurm does. It succeeds, whatever is wrong. Returns what it says."""
    hostile = {"SLURM_JOB_ID": "1; touch /tmp/x", "SLURM_JOB_USER": "$(id)", "BASH_ENV": "/tmp/x", "ENV": "/tmp/x"}
    done = subprocess.run([script], env=hostile, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0
    assert done.stdout == ""
    return done.stderr


@pytest.fixture
def home(slurm: SlurmCluster, request: pytest.FixtureRequest) -> Path:
    return somebody().folder(slurm.folder / f"home-{request.node.name[:40]}")


def job(slurm: SlurmCluster, home: Path, body: str, *options: str, user: User | None = None, **variables: str) -> str:
    """Run a batch job to its end. Returns what it wrote."""
    script = home / "job.sh"
    script.write_text(f"#!/bin/bash\n{body}\n")
    number = slurm.submit(script, "--output=out", *options, user=user or somebody(), folder=home, **variables)
    slurm.wait(number)
    return (home / "out").read_text()


def test_a_jobs_tasks_can_write_where_the_agent_reads(slurm: SlurmCluster, home: Path) -> None:
    told = job(
        slurm, home, 'echo "$TRAINYARD_PROGRESS_DIR"; srun sh -c \'echo "{}" >"$TRAINYARD_PROGRESS_DIR/mine.jsonl"\''
    )
    assert told == f"{slurm.progress}\n"
    file = slurm.progress / "mine.jsonl"
    assert (file.owner(), file.read_text()) == ("games", "{}\n")
    status = slurm.progress.stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (0, 0o1777)


def test_nothing_that_a_user_sets_is_run_as_root(slurm: SlurmCluster, home: Path) -> None:
    planted = home / "planted"
    planted.write_text(f"#!/bin/sh\nid -u >>{home}/ran\n")
    planted.chmod(0o755)
    for name in ("find", "mkdir", "stat", "chmod"):
        (home / name).symlink_to(planted)
    text = f"$({planted})`{planted}`;{planted};\n{planted}\n"
    job(
        slurm, home, "true", f"--job-name={text}", f"--comment={text}", user=somebody(),
        PATH=f"{home}:{os.environ['PATH']}", ENV=str(planted), BASH_ENV=str(planted),
    )  # fmt: skip
    ran = (home / "ran").read_text().split() if (home / "ran").exists() else []
    assert "0" not in ran, "root has run a user's program"
    assert "idle" in slurm.run("sinfo", "--noheader", f"--nodes={slurm.nodes[0]}", "--format=%T"), "the node is drained"


def test_the_prolog_leaves_a_link_and_what_is_anothers_alone_and_lets_jobs_run(tmp_path: Path) -> None:
    aim = tmp_path / "aim"
    aim.mkdir(mode=0o700)
    link = tmp_path / "link"
    link.symlink_to(aim)
    assert "is a link" in run(copy("prolog", tmp_path, link))
    assert aim.stat().st_mode & 0o7777 == 0o700
    file = tmp_path / "file"
    file.touch()
    assert "is no folder" in run(copy("prolog", tmp_path, file))
    other = somebody().folder(tmp_path / "other")
    assert "belongs to another user" in run(copy("prolog", tmp_path, other))
    assert other.stat().st_mode & 0o7777 == 0o755
    assert "cannot be made" in run(copy("prolog", tmp_path, file / "below" / "progress"))


def test_the_prolog_makes_the_folder_once_and_mends_its_mode(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "progress"
    script = copy("prolog", tmp_path, folder)
    assert run(script) == ""
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert folder.parent.stat().st_mode & 0o7777 == 0o755
    folder.chmod(0o755)
    assert run(script) == ""
    assert folder.stat().st_mode & 0o7777 == 0o1777


def test_the_epilog_removes_what_nobody_has_written_for_a_day(tmp_path: Path) -> None:
    folder = tmp_path / "progress"
    (folder / "slurm-9.jsonl").mkdir(parents=True)
    aim = tmp_path / "aim"
    aim.touch()
    (folder / "slurm-8.jsonl").symlink_to(aim)
    names = ["slurm-7.jsonl", "alice.slurm-6.jsonl", "slurm-5.jsonl", "resnet50.jsonl", "slurm-4 ; x.jsonl"]
    for name in names:
        (folder / name).touch()
    for name in (*names, "slurm-9.jsonl"):
        if name != "slurm-5.jsonl":
            os.utime(folder / name, (time.time() - DAY - 120,) * 2)
    os.utime(folder / "slurm-8.jsonl", (time.time() - DAY - 120,) * 2, follow_symlinks=False)
    assert run(copy("epilog", tmp_path, folder)) == ""
    assert {path.name for path in folder.iterdir()} == {
        "slurm-9.jsonl",
        "slurm-8.jsonl",
        "slurm-5.jsonl",
        "resnet50.jsonl",
    }
    assert aim.exists()


def test_the_epilog_without_a_folder_and_with_a_link_does_nothing(tmp_path: Path) -> None:
    assert run(copy("epilog", tmp_path, tmp_path / "none")) == ""
    aim = tmp_path / "aim"
    aim.mkdir()
    (aim / "slurm-1.jsonl").touch()
    os.utime(aim / "slurm-1.jsonl", (0, 0))
    (tmp_path / "link").symlink_to(aim)
    assert run(copy("epilog", tmp_path, tmp_path / "link")) == ""
    assert (aim / "slurm-1.jsonl").exists()


def test_all_scripts_ship_executable() -> None:
    assert {path.name for path in SHIPPED.iterdir()} == set(SCRIPTS)
    assert all(os.access(path, os.X_OK) for path in SHIPPED.iterdir())
