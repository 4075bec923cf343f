"""Which features the kernel has, by its lists of modules. Nothing is loaded to find out. Pure, but for ``read``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal, NamedTuple

LOADED = Path("/sys/module")
FOLDER = Path("/lib/modules")
Presence = Literal["is loaded", "is built in", "can be loaded", "not there", "not known"]


class Modules(NamedTuple):
    """Names of modules: those that are loaded, those in the kernel itself, and those that can be loaded.

    ``is_listed``: the kernel's lists can be read, which a container often cannot.
    """

    loaded: frozenset[str]
    built_in: frozenset[str]
    loadable: frozenset[str]
    is_listed: bool

    def presence(self, name: str) -> Presence:
        """Returns how a module is there."""
        if name in self.built_in:
            return "is built in"
        if name in self.loaded:
            return "is loaded"
        if name in self.loadable:
            return "can be loaded"
        return "not there" if self.is_listed else "not known"


def read(loaded: Path = LOADED, folder: Path | None = None) -> Modules:
    """Returns the modules of the running kernel."""
    folder = folder or FOLDER / os.uname().release
    built_in, loadable = _text(folder / "modules.builtin"), _text(folder / "modules.dep")
    try:
        present = frozenset(entry.name.lower() for entry in os.scandir(loaded))
    except OSError:
        present = frozenset()
    return Modules(present, names(built_in or ""), names(loadable or ""), loadable is not None)


def names(listed: str) -> frozenset[str]:
    """Returns the names in modules.builtin or modules.dep, which have a path at the begin of each line, in lower case.

    A module is named alike with dashes and underscores, and the targets of iptables in upper case.
    """
    found = (re.match(r"(?:\S*/)?([^/\s:]+?)\.ko(?:\.\w+)?(?::|$)", line) for line in listed.splitlines())
    return frozenset(match[1].replace("-", "_").lower() for match in found if match is not None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
