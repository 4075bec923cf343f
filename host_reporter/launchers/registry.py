"""Launchers by name, found through the entry-point group ``trainyard.launchers``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import entry_points

from host_reporter.launchers.launcher import Launcher

GROUP = "trainyard.launchers"


class LauncherError(ValueError):
    """A launcher that does not exist, or cannot be loaded. The message says what would be right."""


@cache
def _entries() -> tuple[Mapping[str, Launcher], Mapping[str, str]]:
    """Returns each installed launcher by its entry-point name, and for each that cannot be loaded the reason."""
    loadable: dict[str, Launcher] = {}
    broken: dict[str, str] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded = entry.load()
            if not (isinstance(loaded, type) and issubclass(loaded, Launcher)):
                raise TypeError("not a subclass of Launcher")
            loadable[entry.name] = loaded()
        except Exception as error:  # A broken package must not take the other launchers away.
            broken[entry.name] = f"entry point {entry.name} = {entry.value}: {type(error).__name__}: {error}"
    return loadable, broken


def available() -> Mapping[str, Launcher]:
    """Returns each installed launcher by its name, without those that cannot be loaded."""
    return _entries()[0]


def broken() -> Mapping[str, str]:
    """Returns for each installed launcher that cannot be loaded the reason, in a sentence."""
    return _entries()[1]


def choose(names: Iterable[str] | None) -> tuple[Launcher, ...]:
    """Returns the launchers of these names; None: all that can be loaded. Raises LauncherError."""
    known, faulty = _entries()
    chosen = []
    for name in known if names is None else dict.fromkeys(names):
        if name in faulty:
            raise LauncherError(faulty[name])
        if name not in known:
            raise LauncherError(f"unknown launcher {name[:63]!r}; there are: {', '.join(known)}")
        chosen.append(known[name])
    return tuple(chosen)
