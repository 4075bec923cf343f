"""Whose job it is and of which family, where its job file leaves that open."""

from __future__ import annotations

import os
import pwd
from functools import lru_cache
from pathlib import Path
from typing import Any

from host_reporter.jobs.job import Spec
from host_reporter.training.family import MAX_NAME, family_of_name

_NOBODY = frozenset({0, 65534})
"""Root runs what others have started, and a file system that knows no users says nobody. Neither is a user."""


def named(spec: Spec, study: str | None, user: str | None) -> Spec:
    """Returns a spec with the family of its study, and with its user, where it names none itself."""
    missing: dict[str, Any] = {}
    if spec.family is None and not spec.model and (family := family_of_name(study)) is not None:
        missing["family"] = family
    if spec.user is None and user is not None:
        missing["user"] = user
    return type(spec).model_construct(**dict(spec) | missing) if missing else spec


def user_name(uid: int | None) -> str | None:
    """Returns the name of a user whose job it is; None: it is nobody's in particular."""
    return None if uid is None or uid in _NOBODY else _name(uid)


def user_of(progress: Path) -> str | None:
    """Returns the user who writes a job's progress; None: it is not there yet, or it is nobody's in particular."""
    try:
        uid = os.stat(progress).st_uid  # noqa: PTH116 - as in the discovery
    except (OSError, ValueError):
        return None
    return user_name(uid)


@lru_cache(maxsize=1024)
def _name(uid: int) -> str:
    """Returns the name of a user, and the number where there is no name that the controller takes."""
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # such as a container's user, which this host does not know
        return str(uid)
    return name if 0 < len(name) <= MAX_NAME and name.isprintable() else str(uid)
