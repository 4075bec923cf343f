"""Policies by name, found through the entry-point group ``trainyard.policies``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from controller.policies._base import Policy

GROUP = "trainyard.policies"


class PolicyError(ValueError):
    """An unknown policy, or options that a policy refuses; the message is for the operator."""


@cache
def available() -> Mapping[str, type[Policy]]:
    """Every installed policy's class by its entry-point name. An entry that cannot be loaded is an error."""
    found: dict[str, type[Policy]] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        loaded = entry.load()
        if not (isinstance(loaded, type) and issubclass(loaded, Policy)):
            raise PolicyError(f"entry point {entry.name} = {entry.value}: not a subclass of Policy")
        found[entry.name] = loaded
    return found


def make(name: str, options: Mapping[str, object] | None = None) -> Policy:
    """The policy called ``name`` with ``options``; raises PolicyError with what would be right."""
    policies = available()
    if name not in policies:
        raise PolicyError(f"unknown policy {name!r}; there are: {', '.join(policies)}")
    try:
        return policies[name](**(options or {}))
    except (TypeError, ValueError) as error:
        raise PolicyError(f"policy {name}: {error}") from error
