"""The reasons why a request was not carried out. The API makes problem documents of them."""

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):  # noqa: N818 - a refusal is an answer to the client, not a fault of the controller
    """Base of all refusals; the message is a sentence for the client."""


class NotFound(Refused):
    """The object that the path names does not exist."""


class NotAllowed(Refused):
    """The caller may not change what belongs to others."""


class Conflict(Refused):
    """The request contradicts the present state; ``errors`` has (field, what is wrong) where a field is at fault."""

    def __init__(self, problem: str, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(problem)
        self.errors = tuple(errors)


class Invalid(Refused):
    """A body that is well formed but cannot be right; ``errors`` has (field, what is wrong)."""

    def __init__(self, errors: Sequence[tuple[str, str]]) -> None:
        super().__init__("; ".join(f"{field}: {problem}" for field, problem in errors))
        self.errors = tuple(errors)


class Unavailable(Refused):
    """The controller cannot answer now; the client should ask again later."""
