"""Which roles may make a call. The table of calls (``routes``) names one of these for each call.

The role alone does not decide: a tenant or a host may make a call only for what is its own, which the handler checks.
"""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus

from controller.access.caller import Caller, Role
from controller.api.http import HttpError

_READERS = (Role.OPERATOR, Role.VIEWER)


class Access(Enum):
    """Who may make a call; the name says what the call does.

    The value has the roles in order, and whether the call asks who the caller is.
    """

    OPEN = (tuple(Role), False)
    """Anybody, without a token."""
    KNOWN = (tuple(Role), True)
    """Every caller that is known."""
    OPERATE = ((Role.OPERATOR,), True)
    READ = (_READERS, True)
    READ_JOB = ((*_READERS, Role.TENANT), True)
    CHANGE_JOB = ((Role.OPERATOR, Role.TENANT, Role.HOST), True)
    READ_HOST = ((*_READERS, Role.HOST), True)
    REPORT = ((Role.OPERATOR, Role.HOST), True)
    ENROL = ((Role.OPERATOR, Role.ENROL), True)

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that may make the call."""
        return tuple(self.value[0])

    def require(self, caller: Caller, call: str) -> None:
        """Raises HttpError 403, with the reason in words, where the caller's role may not make the call."""
        if caller.role not in self.roles:
            allowed = " or ".join(self.roles)
            raise HttpError(HTTPStatus.FORBIDDEN, f"{_kept_to(caller)}; {call} is for: {allowed}", close=True)


def _kept_to(caller: Caller) -> str:
    match caller.role:
        case Role.HOST:
            return f"the token of host {caller.host} is for its reports, its plan and its jobs only"
        case Role.TENANT:
            return f"{caller.name} is a tenant, who may only read and change its own jobs"
        case Role.ENROL:
            return f"{caller.name} has the role enrol, which may only ask to add a host"
        case _:
            return f"{caller.name} has the role {caller.role}, which may only read"
