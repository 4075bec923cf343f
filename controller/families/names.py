"""Whose a family is, and what it is called."""

from __future__ import annotations

from typing import NamedTuple


class Owner(NamedTuple):
    """Whose runs these are. ``user``: the Unix user, where one is known; else ``host``: the host whose token registered
    them; neither: an operator's.
    """

    user: str | None = None
    host: str | None = None

    @classmethod
    def of(cls, user: str | None, registrar: str | None) -> Owner:
        """Returns the owner of a job of this user, registered with the token of the host ``registrar`` (None: an
        operator's)."""
        return cls(user=user) if user is not None else cls(host=registrar)


class FamilyKey(NamedTuple):
    """A family belongs to its owner: of the same name there may be others."""

    owner: Owner
    name: str


def family_in_force(family: str | None, model: str | None) -> str | None:
    """Returns the name of a job's family: the declared one, else the model's. None: it has none.

    A name without any letter or digit is none, so a job that declares an empty one has no family.
    """
    name = family if family is not None else model
    return name if name is not None and any(map(str.isalnum, name)) else None
