"""The id of a found job. Pure.

What the kernel or root says names a job by itself: ``slurm-123``, ``k8s-NAMESPACE.NAME``. What a process says names a
job of its user: ``alice.resnet50``. So no user can name a job of another user's, and two users' same name is two jobs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

from host_reporter.launchers.launcher import Sighting

MAX_ID = 63
_HASH = 8
_PLAIN = re.compile(r"[a-z][a-z0-9_-]*")
_BELIEVED = ("k8s-", "slurm-")


def job_id(sighting: Sighting, user: int | None, name_of: Callable[[int], str | None]) -> str | None:
    """Returns the id of a sighted job; None where it has none. ``name_of`` returns the name of a user's number."""
    if sighting.name is None:
        return None
    if sighting.trust == "cgroup":
        return bounded(sighting.name)
    return bounded(f"{owner(user, name_of)}.{sighting.name}") if user is not None else None


def owner(user: int, name_of: Callable[[int], str | None]) -> str:
    """Returns how ids call a user: by name, or by number where the name could be taken for something else."""
    name = name_of(user)
    if name is None or not _PLAIN.fullmatch(name) or name.startswith(_BELIEVED):
        return str(user)
    return name


def bounded(text: str) -> str:
    """Returns an id of at most MAX_ID characters. A longer one ends with eight hex digits of the SHA-256 of it all."""
    if len(text) <= MAX_ID:
        return text
    return f"{text[: MAX_ID - _HASH - 1]}-{hashlib.sha256(text.encode()).hexdigest()[:_HASH]}"
