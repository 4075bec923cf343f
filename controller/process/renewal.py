"""What SIGHUP does: certificates are read again, and everything that is still allowed goes on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Protocol

from controller.access.certificates import CertificateError, Certificates
from controller.access.expiry import Expiries

LOG = logging.getLogger("trainyard.certificates")


class Renewable(Protocol):
    """What uses certificates."""

    def read_again(self) -> None:
        """Read the files again. Raises CertificateError, and then goes on with what it has."""


class Renewal:
    """Renews the certificates of ``parts``; ``certificates`` are all their files. Raises CertificateError."""

    def __init__(self, parts: Sequence[Renewable], certificates: Sequence[Certificates]) -> None:
        self._parts = parts
        self._certificates = tuple(dict.fromkeys(certificates))
        self._failure: str | None = None
        self._expiries = self._read_expiries()

    def run(self) -> None:
        """Have all parts read their certificates again, and log the outcome."""
        failures: dict[str, None] = {}
        for part in self._parts:
            try:
                part.read_again()
            except CertificateError as error:
                failures[str(error)] = None
        try:
            self._expiries = self._read_expiries()
        except CertificateError as error:
            failures[str(error)] = None
        self._failure = "; ".join(failures) or None
        if self._failure is not None:
            LOG.error("the certificates cannot be read again, those from before stay in use: %s", self._failure)
        else:
            LOG.info("the certificates have been read again; other settings are read at the start alone")

    def problems(self) -> tuple[str, ...]:
        """Returns what an operator must know of the certificates, a sentence each, its cause behind a colon."""
        failed = (f"the certificates could not be read again: {self._failure}",) if self._failure is not None else ()
        return (*failed, *dict.fromkeys(problem for each in self._expiries for problem in each.problems()))

    def _read_expiries(self) -> tuple[Expiries, ...]:
        return tuple(Expiries(each) for each in self._certificates)
