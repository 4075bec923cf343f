"""Policies by name, found through the entry-point group ``trainyard.policies``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from controller.policies.base import Policy
from controller.policies.parts.options import Described, describe

GROUP = "trainyard.policies"


class PolicyError(ValueError):
    """An unknown policy, or options that a policy refuses; the message is for the operator."""


@cache
def _entries() -> tuple[Mapping[str, type[Policy]], Mapping[str, str]]:
    """Returns each installed policy's class by its entry-point name, and for each that cannot be loaded the reason."""
    loadable: dict[str, type[Policy]] = {}
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded = entry.load()
        except Exception as error:  # A broken package must not take the other policies away.
            broken[entry.name] = f"entry point {entry.name} = {entry.value}: {type(error).__name__}: {error}"
            continue
        if isinstance(loaded, type) and issubclass(loaded, Policy):
            loadable[entry.name] = loaded
        else:
            broken[entry.name] = f"entry point {entry.name} = {entry.value}: not a subclass of Policy"
    return loadable, broken


def option_value(text: str) -> object:
    """Returns the value of an option's text: parsed where it is JSON (a number, true, null), else the text."""
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    except RecursionError:
        raise PolicyError(f"{text[:40]!r} is nested too deeply") from None
    return value


def available() -> Mapping[str, type[Policy]]:
    """Returns each installed policy's class by its entry-point name, without those that cannot be loaded."""
    return _entries()[0]


def check_name(name: str) -> None:
    """Raises PolicyError where no installed policy is called ``name``."""
    _of_name(name, None)


def make(
    name: str, options: Mapping[str, object] | None = None, *, policies: Mapping[str, type[Policy]] | None = None
) -> Policy:
    """Returns the policy called ``name`` with ``options``. Raises PolicyError, which says what would be right.

    ``policies`` are the classes by name; None stands for the installed ones.
    """
    chosen = _of_name(name, policies)
    given = options or {}
    _check_names(name, describe(chosen), given)
    try:
        policy = chosen(**given)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"policy {name}: {error}") from error
    for option, value in given.items():
        if not _is_finite(value):
            raise PolicyError(f"policy {name}: {option}: a number in it is infinite or none at all; give a finite one")
    return policy


def _of_name(name: str, policies: Mapping[str, type[Policy]] | None) -> type[Policy]:
    """Returns the class of a policy. ``policies`` of None stands for the installed ones. Raises PolicyError."""
    if policies is None:
        policies, broken = _entries()
        if name in broken:
            raise PolicyError(broken[name])
    if name not in policies:
        raise PolicyError(f"unknown policy {name!r}; there are: {', '.join(policies)}")
    return policies[name]


def _check_names(policy: str, known: Mapping[str, Described] | None, given: Mapping[str, object]) -> None:
    """Raises PolicyError for unknown or missing options; ``known`` is None where the policy takes any option."""
    if known is None:
        return
    there_are = f"there are: {', '.join(map(str, known.values()))}" if known else "it has none"
    if unknown := [option for option in given if option not in known]:
        names = ", ".join(str(option)[:40] for option in unknown)
        raise PolicyError(f"policy {policy} has no option {names}; {there_are}")
    if missing := [option.name for option in known.values() if option.is_required and option.name not in given]:
        raise PolicyError(f"policy {policy} needs the option {', '.join(missing)}; {there_are}")


def _is_finite(value: object) -> bool:
    """Returns whether no number in a value is NaN or infinite."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return not isinstance(value, list) or all(map(_is_finite, value))
