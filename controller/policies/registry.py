"""Policies by name, found through the entry-point group ``trainyard.policies``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from controller.policies._base import Policy

GROUP = "trainyard.policies"


class PolicyError(ValueError):
    """An unknown policy, or options that a policy refuses; the message is for the operator."""


@cache
def _entries() -> tuple[Mapping[str, type[Policy]], Mapping[str, str]]:
    """Every installed policy's class by its entry-point name, and why others cannot be had."""
    found: dict[str, type[Policy]] = {}
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded = entry.load()
        except Exception as error:  # the package may be anybody's, and must not cost us all others
            broken[entry.name] = f"entry point {entry.name} = {entry.value}: {type(error).__name__}: {error}"
            continue
        if isinstance(loaded, type) and issubclass(loaded, Policy):
            found[entry.name] = loaded
        else:
            broken[entry.name] = f"entry point {entry.name} = {entry.value}: not a subclass of Policy"
    return found, broken


def option_value(text: str) -> object:
    """An option's value as typed: JSON where it is that (a number, true, null, a quoted text), else the text itself."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise PolicyError(f"{text[:40]!r} is nested too deeply") from None
    return value


def available() -> Mapping[str, type[Policy]]:
    """Every installed policy's class by its entry-point name; those that cannot be loaded are left out."""
    return _entries()[0]


def make(name: str, options: Mapping[str, object] | None = None) -> Policy:
    """The policy called ``name`` with ``options``; raises PolicyError with what would be right."""
    policies = available()
    if name in (broken := _entries()[1]):
        raise PolicyError(broken[name])
    if name not in policies:
        raise PolicyError(f"unknown policy {name!r}; there are: {', '.join(policies)}")
    try:
        return policies[name](**(options or {}))
    except (TypeError, ValueError) as error:
        raise PolicyError(f"policy {name}: {error}") from error
