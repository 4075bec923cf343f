"""Hosts that have enrolled prove who they are by a token of their own, or by a certificate with their name."""

from __future__ import annotations

import hashlib
import math

import pytest

from controller.access.caller import Caller, Role
from controller.access.callers import Callers
from controller.access.client_certificates import ClientCertificate
from controller.access.unknown import UnknownCallerError

TOKEN = "try_of_the_agent_of_h7"


class Enrolled:
    """h7 alone was approved."""

    def host_of_token(self, token_sha256: str) -> str | None:
        return "h7" if token_sha256 == hashlib.sha256(TOKEN.encode()).hexdigest() else None

    def is_approved(self, name: str) -> bool:
        return name == "h7"


@pytest.fixture
def callers() -> Callers:
    return Callers(["h1"], is_open=False, enrolled=Enrolled())


def test_the_own_token_is_that_of_the_host(callers: Callers) -> None:
    assert callers.by_token(TOKEN) == Caller("h7", Role.HOST, host="h7")
    for other in (TOKEN[:-1], hashlib.sha256(TOKEN.encode()).hexdigest(), ""):
        with pytest.raises(UnknownCallerError):
            callers.by_token(other)


def test_a_token_of_the_settings_goes_before_it() -> None:
    operator = Caller("operator", Role.OPERATOR)
    callers = Callers(["h1"], is_open=False, tokens=[(TOKEN, operator)], enrolled=Enrolled())
    assert callers.by_token(TOKEN) == operator


def test_a_certificate_may_have_the_name_of_either_kind_of_host(callers: Callers) -> None:
    def certificate(*names: str) -> ClientCertificate:
        return ClientCertificate(common_names=(), dns_names=names, ends_at=math.inf)

    for name in ("h1", "h7"):
        assert callers.by_certificate(certificate(name)).host == name
    for names in (("h8",), ("h1", "h7"), ()):
        with pytest.raises(UnknownCallerError):
            callers.by_certificate(certificate(*names))
