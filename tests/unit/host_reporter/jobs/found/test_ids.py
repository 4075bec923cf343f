"""The ids of found jobs: believed ones stand alone, others belong to their user."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.wire import NAME_PATTERN
from host_reporter.jobs.found.ids import MAX_ID, bounded, job_id
from host_reporter.launchers.launcher import Sighting
from host_reporter.training.launch import job_name


@pytest.mark.parametrize(
    ("user", "prefix"),
    [("alice", "alice"), ("a-b_9", "a-b_9"), ("_apt", "7"), ("Alice", "7"), ("1000", "7"), ("k8s-x", "7"),
     ("slurm-1", "7"), ("a.b", "7"), (None, "7"), ("", "7")],
)  # fmt: skip
def test_a_user_is_called_by_a_plain_name_or_by_number(user: str | None, prefix: str) -> None:
    assert job_id(Sighting("trainyard", "resnet"), 7, lambda _: user) == f"{prefix}.resnet"


def test_the_same_name_of_two_users_is_two_jobs() -> None:
    names = {1: "alice", 2: "bob"}.get
    one, two = (job_id(Sighting("torchrun", "torchrun-x"), user, names) for user in (1, 2))
    assert (one, two) == ("alice.torchrun-x", "bob.torchrun-x")
    assert job_id(Sighting("slurm", "slurm-1", trust="environment"), 1, names) == "alice.slurm-1"
    assert job_id(Sighting("slurm", "slurm-1", trust="cgroup"), 1, names) == "slurm-1"
    assert job_id(Sighting("trainyard", "x"), None, names) is None
    assert job_id(Sighting("openmpi", None), 1, names) is None


@given(st.text(max_size=90), st.text(alphabet="abc-_.09", max_size=40))
def test_every_id_is_one_that_the_controller_takes(text: str, user: str) -> None:
    name = job_name(text)
    job = job_id(Sighting("trainyard", name), 5, lambda _: user)
    assert job is None or re.fullmatch(NAME_PATTERN, job)


def test_long_ids_stay_different() -> None:
    one, two = bounded("a" * 80), bounded("a" * 81)
    assert len(one) == len(two) == MAX_ID and one != two
    assert bounded("a" * MAX_ID) == "a" * MAX_ID
