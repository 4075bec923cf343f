"""Finds hosts that have asked by what they have: their claims, and the hashes of their tokens. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from controller.enrolment.claims import Claim, Clash, claims_of
from controller.enrolment.record import Enrolment


class Index:
    """What approved hosts hold, and what waiting hosts want."""

    def __init__(self) -> None:
        self._held: dict[Claim, str] = {}
        self._wanted: dict[Claim, set[str]] = {}
        self._tokens: dict[str, str] = {}

    @property
    def held(self) -> Mapping[Claim, str]:
        """The approved host that holds each claim."""
        return self._held

    def host_of_token(self, token_sha256: str) -> str | None:
        """Returns the approved host whose token has this SHA-256, in hexadecimal."""
        return self._tokens.get(token_sha256)

    def of_mac(self, mac: str) -> list[str]:
        """Returns the hosts that have, or want, this MAC address."""
        claim = Claim("mac", mac)
        holder = self._held.get(claim)
        return [*([holder] if holder is not None else []), *sorted(self._wanted.get(claim, ()))]

    def rivals(self, enrolment: Enrolment) -> list[Clash]:
        """Returns what other hosts that wait want, too."""
        return [
            Clash(claim, name)
            for claim in claims_of(enrolment)
            for name in sorted(self._wanted.get(claim, ()))
            if name != enrolment.name
        ]

    def add(self, enrolment: Enrolment) -> None:
        """Note what a host holds or wants. A refused one does neither."""
        if enrolment.state == "approved":
            self._tokens[enrolment.request.token_sha256] = enrolment.name
            self._held.update(dict.fromkeys(claims_of(enrolment), enrolment.name))
        elif enrolment.state == "pending":
            for claim in claims_of(enrolment):
                self._wanted.setdefault(claim, set()).add(enrolment.name)

    def drop(self, enrolment: Enrolment) -> None:
        """Forget what ``add`` has noted of the same value."""
        if enrolment.state == "approved":
            self._tokens.pop(enrolment.request.token_sha256, None)
        for claim in claims_of(enrolment):
            if self._held.get(claim) == enrolment.name:
                del self._held[claim]
            names = self._wanted.get(claim, set())
            names.discard(enrolment.name)
            if not names:
                self._wanted.pop(claim, None)
