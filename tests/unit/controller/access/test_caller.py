"""Which jobs are a tenant's."""

from __future__ import annotations

import pytest

from controller.access.caller import Tenancy


@pytest.mark.parametrize(
    ("job", "user", "owned"),
    [
        ("anything", "alice", True),
        ("vision-1", None, True),
        ("vision-1", "bob", True),
        ("visio", None, False),
        ("anything", "alic", False),
        ("anything", None, False),
    ],
)
def test_a_tenants_jobs_are_those_of_its_users_and_of_its_prefix(job: str, user: str | None, owned: bool) -> None:
    assert Tenancy(("alice",), "vision-").owns(job, user) is owned


def test_without_a_prefix_the_users_alone_count() -> None:
    assert not Tenancy(("alice",)).owns("vision-1", None)
