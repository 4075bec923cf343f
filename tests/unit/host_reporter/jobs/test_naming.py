"""Whose job it is and of which family: what the agent adds to the spec of a job file."""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller.wire import JobSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.naming import named, user_of
from host_reporter.jobs.studies.stages import StagedSpec, in_stage
from tests.support.agent.followed_jobs import PATTERN, Recorder, World
from tests.support.controller.registry.registry_world import job_spec

DAEMON = pwd.getpwuid(1)
UNKNOWN_UID = 54_321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to another user")


@pytest.mark.parametrize(
    ("spec", "study", "user", "names"),
    [
        ({}, None, None, (None, None)),
        ({}, "tuning", "ann", ("tuning", "ann")),
        ({}, "slurm-4711", None, (None, None)),
        ({"model": "resnet"}, "tuning", None, (None, None)),
        ({"model": ""}, "tuning", None, ("tuning", None)),
        ({"family": "mine"}, "tuning", None, ("mine", None)),
        ({"family": ""}, "tuning", None, ("", None)),
        ({"user": "bob"}, None, "ann", (None, "bob")),
    ],
)
def test_what_a_spec_leaves_open_is_added(spec: Any, study: Any, user: Any, names: Any) -> None:
    given = job_spec(**spec)
    full = named(given, study, user)
    assert (full.family, full.user) == names
    assert JobSpec.model_validate_json(full.model_dump_json()).tasks == given.tasks


def test_a_staged_spec_stays_one() -> None:
    assert isinstance(named(in_stage(job_spec(), "s.r0", 9.0), "s", "ann"), StagedSpec)


def test_the_user_is_whose_progress_it_is(tmp_path: Path) -> None:
    progress = tmp_path / "a.jsonl"
    assert user_of(progress) is None
    progress.touch()
    own = os.geteuid()
    assert user_of(progress) == (None if own == 0 else pwd.getpwuid(own).pw_name)
    assert user_of(Path("a\0b")) is None


@needs_root
def test_users_without_a_name_have_a_number_and_nobody_is_no_user(tmp_path: Path) -> None:
    progress = tmp_path / "a.jsonl"
    progress.touch()
    for uid, user in ((1, DAEMON.pw_name), (UNKNOWN_UID, str(UNKNOWN_UID)), (65534, None), (0, None)):
        os.chown(progress, uid, -1)
        assert user_of(progress) == user


class Users(Recorder):
    def declare(self, job: str, spec: JobSpec | None) -> None:
        super().declare(job, spec)
        self.calls[-1] = ("declare", job, spec.user if spec is not None else None)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path, Users())
    yield made
    made.stop()


@needs_root
def test_a_job_is_declared_with_its_user_as_soon_as_there_is_progress(world: World) -> None:
    world.job()
    world.start()
    wait_until(lambda: world.receiver.calls == [("declare", "a", None)], what="a job without a progress file")
    early = world.path / "early.log"
    early.write_text("step 1 acc 0.5\n")
    os.chown(early, 1, -1)
    early.rename(world.log)
    wait_until(lambda: world.receiver.points("a") == [1])
    assert world.receiver.calls[1] == ("declare", "a", DAEMON.pw_name)
    world.train(2)
    wait_until(lambda: world.receiver.points("a") == [1, 2])
    assert world.receiver.order("a") == ["declare", "declare", "add", "add"]


@needs_root
def test_a_declared_user_is_not_replaced(world: World) -> None:
    world.train(1)
    os.chown(world.log, 1, -1)
    world.job(spec={"user": "bob"}, progress={"log": str(world.log), "pattern": PATTERN})
    world.start()
    wait_until(lambda: world.receiver.points("a") == [1])
    assert world.receiver.calls[0] == ("declare", "a", "bob")
