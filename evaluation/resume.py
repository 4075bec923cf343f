"""Resuming an evaluation: the result of each group is kept, with the request that it answers.

A later run takes a result over only if it answers the same request on the same datapath. The commit that measured it is
reported but not compared, because a repair of something else need not cost hours.

A result also has a small form, one file, for a claim that takes more than one sitting: only what is added up, with a
digest of the request. Such files can be committed, so that another machine measures only what is missing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic

from pydantic import TypeAdapter

from evaluation.claim import R
from topologies.lab.results import save

ORIGIN = "origin.json"
_EMPTY: tuple[Any, ...] = (None, "", [], {})
_LATER: Mapping[str, Any] = {
    "rails": 1,
    "addresses": "ipv4",
    "enforce": ["switches", "hosts"],
    "identity": "flows",
    "served": "controller",
}
"""Fields that requests did not have when the first small forms were committed, and what was measured then."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The request that a result answers, and the commit that measured it."""

    request: Any
    commit: str


@dataclass(frozen=True, slots=True)
class Measured(Generic[R]):
    """A group's result, and the commit that measured it."""

    result: R
    commit: str


def mark_unfinished(folder: Path) -> None:
    """Mark the result in ``folder`` as unfinished, because its group is measured again. Raises OSError."""
    (folder / ORIGIN).unlink(missing_ok=True)


def mark_whole(folder: Path, request: Any, commit: str) -> None:
    """Mark the result in ``folder`` as whole, and as the answer to ``request``. Raises OSError."""
    save(folder / ORIGIN, Origin(request, commit))


def load(folder: Path, request: Any, datapath: str, read: Callable[[Path], R]) -> Measured[R] | None:
    """Return the whole result in ``folder``, which ``read`` reads.

    Returns None where there is none, or where it answers another request or comes from another datapath.
    """
    try:
        origin = TypeAdapter(Origin).validate_json((folder / ORIGIN).read_bytes())
        # Compared as a value, so that a field that an older version did not have counts as its default.
        answered = TypeAdapter(type(request)).validate_json(json.dumps(origin.request))
        result = read(folder)
    except (OSError, ValueError):
        return None
    return Measured(result, origin.commit) if answered == request and result.datapath == datapath else None


@dataclass(frozen=True, slots=True)
class SmallForm:
    """A result without what is not added up, the digest of the request that it answers, and the commit."""

    digest: str
    commit: str
    result: Any


def digest(request: Any) -> str:
    """Returns a hash of a request.

    Fields that are empty do not count, nor do those of ``_LATER`` with these values, so new fields do not change it.
    """
    plain = TypeAdapter(type(request)).dump_python(request, mode="json")
    return hashlib.sha256(json.dumps(_what_counts(plain), sort_keys=True).encode()).hexdigest()


def save_small(path: Path, request: Any, commit: str, result: Any) -> None:
    """Writes the small form of a result. Raises OSError."""
    save(path, SmallForm(digest(request), commit, result))


def load_small(path: Path, request: Any, datapath: str, answer: type[R]) -> Measured[R] | None:
    """Returns the result of a small form, of type ``answer``.

    Returns None where there is none that answers the request on the datapath.
    """
    try:
        form = TypeAdapter(SmallForm).validate_json(path.read_bytes())
        if form.digest != digest(request):
            return None
        # Read from JSON, because only there a list stands for a tuple.
        result = TypeAdapter(answer).validate_json(json.dumps(form.result))
    except (OSError, ValueError):
        return None
    return Measured(result, form.commit) if result.datapath == datapath else None


def _what_counts(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {key: _what_counts(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item not in _EMPTY and (key, item) not in _LATER.items()}
    return [_what_counts(item) for item in value] if isinstance(value, list) else value
