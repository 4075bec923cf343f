"""Checks the settings of who enforces the order: their earlier names, and what disagrees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controller.enforcement import IDENTITY_OF, MODE_OF, PLACES, Identity, Mode, Place

_EARLIER = {"switch": "switches", "host": "hosts"}


def as_places(value: object) -> object:
    """Return who enforces in one order, each once, and by its present name; raises ValueError for what is no list."""
    if not isinstance(value, list | tuple):
        raise ValueError(f"it must be a list, such as [{', '.join(PLACES)}]; an empty one only observes")
    named = [_EARLIER.get(place, place) if isinstance(place, str) else place for place in value]
    return tuple(place for place in PLACES if place in named) if all(place in PLACES for place in named) else named


def with_both_names(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the settings with ``identity`` and ``mode`` where one of them is given; what is wrong stays as it is."""
    identity, mode = given.get("identity"), given.get("mode")
    if "identity" not in given:
        return {**given, "identity": IDENTITY_OF[mode]} if mode in tuple(IDENTITY_OF) else given
    if "mode" not in given:
        return {**given, "mode": MODE_OF[identity]} if identity in tuple(MODE_OF) else given
    return given


def check_mode(mode: Mode, identity: Identity | None) -> None:
    """Raise ValueError where ``mode`` is not the other name of ``identity``."""
    if identity is not None and MODE_OF[identity] != mode:
        raise ValueError(f"{mode} is identity: {IDENTITY_OF[mode]}, and identity is {identity}; leave mode out")


def check_places(places: tuple[Place, ...], identity: Identity | None) -> None:
    """Raise ValueError where switches are to know jobs by DSCP, and no switch is to enforce anything."""
    if places != ("hosts",) or identity in (None, "flows"):
        return
    if identity == "dscp":
        raise ValueError(
            "identity: dscp gives each job a DSCP for its life, which the controller's switches map to another queue "
            "with each plan, and no switch is named; leave identity and mode out, since hosts then mark each class "
            "with its DSCP, or add switches"
        )
    raise ValueError(
        "identity: classes (mode: marked) is how the controller's switches know a job, and no switch is named; "
        "leave identity and mode out, since hosts mark each class with its DSCP in any case, or add switches"
    )
