"""Who makes a request: a name, a role, and what the role is bound to. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Proof = Literal["none", "token", "oidc", "certificate"]
"""How a caller has proved who it is. none: no token is set, and the API listens on loopback only."""


class Role(StrEnum):
    """What a caller may do. The table of calls says which roles may make each call."""

    OPERATOR = "operator"
    """May make every call."""
    VIEWER = "viewer"
    """May read everything but the audit, and change nothing."""
    TENANT = "tenant"
    """May read and change the jobs of some users, within bounds."""
    HOST = "host"
    """May report for one host, read its plan, and change the jobs that the host takes part in."""
    ENROL = "enrol"
    """May ask that a host be added, and ask what was decided."""


@dataclass(frozen=True, slots=True)
class Tenancy:
    """Which jobs are a tenant's, and how many and how heavy they may be.

    A job is the tenant's if its ``user`` is one of ``users`` or its id begins with ``prefix``. ``max_jobs`` limits the
    jobs that run at a time, and ``max_weight`` the weight of each.
    """

    users: tuple[str, ...]
    prefix: str | None = None
    max_jobs: int = 16
    max_weight: float = 1.0

    def owns(self, job: str, user: str | None) -> bool:
        """Returns whether the job with this id and this user is the tenant's."""
        return user in self.users or (self.prefix is not None and job.startswith(self.prefix))


@dataclass(frozen=True, slots=True)
class Caller:
    """Who makes a request. ``host`` is set for the role host, and ``tenancy`` for the role tenant, and for no other.

    ``name`` is that of the token, of the certificate, of the person at the identity provider, or of the host.
    """

    name: str
    role: Role
    host: str | None = None
    tenancy: Tenancy | None = None
    proof: Proof = "token"


ANYBODY = Caller("anybody", Role.OPERATOR, proof="none")
"""The caller where no token is set: whoever can reach the loopback address is an operator."""
