"""Why a request was not carried out, as values that the API turns into problem documents."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):  # noqa: N818 - a refusal is an answer to the asker, not a fault of the controller
    """Base of all refusals; the message is a sentence for the person who asked."""


class NotFound(Refused):
    """What the path names does not exist."""


class Conflict(Refused):
    """The request contradicts what holds now; ``errors`` has (field, what is wrong) where a field is at fault."""

    def __init__(self, problem: str, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(problem)
        self.errors = tuple(errors)


class Invalid(Refused):
    """A body that is well formed but cannot be right; ``errors`` has (field, what is wrong)."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {problem}" for field, problem in errors))
        self.errors = tuple(errors)


class Unavailable(Refused):
    """The controller cannot answer yet; asking again later is right."""
