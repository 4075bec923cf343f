"""How many requests a caller may have in progress."""

from __future__ import annotations

import contextlib

from controller.access.caller import Caller, Role
from controller.access.requests_in_progress import RequestsInProgress


def test_each_caller_has_its_own_limit_and_an_answer_makes_room() -> None:
    counted = RequestsInProgress(most=2)
    ann, namesake = Caller("ann", Role.VIEWER), Caller("ann", Role.VIEWER, proof="oidc")
    with counted.of(ann):
        assert not counted.is_full(ann)
        with counted.of(ann):
            assert counted.is_full(ann)
            assert not counted.is_full(namesake)
        assert not counted.is_full(ann)
        with contextlib.suppress(KeyError), counted.of(ann):
            raise KeyError
        assert not counted.is_full(ann), "a request that fails makes room, too"


def test_operators_are_not_limited() -> None:
    counted, operator = RequestsInProgress(most=0), Caller("operator", Role.OPERATOR)
    assert not counted.is_full(operator)
    assert counted.is_full(Caller("h1", Role.HOST, host="h1"))
