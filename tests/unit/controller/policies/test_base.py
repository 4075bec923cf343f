"""The public interface of a policy: the example of its documentation runs as written."""

from __future__ import annotations

import doctest

from controller.policies import base


def test_the_documented_policy_runs_as_written() -> None:
    failed, attempted = doctest.testmod(base)
    assert failed == 0
    assert attempted >= 7


def test_every_public_name_is_there_and_documented() -> None:
    for name in base.__all__:
        assert getattr(base, name).__doc__, name
