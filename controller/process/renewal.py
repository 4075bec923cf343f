"""What SIGHUP does: certificates are read again, and everything that is still allowed goes on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from controller.access.certificates import CertificateError, Certificates
from controller.access.expiry import Expiries
from controller.access.summary import summary

LOG = logging.getLogger("trainyard.certificates")


class Renewable(Protocol):
    """What uses certificates."""

    def read_again(self) -> None:
        """Read the files again. Raises CertificateError, and then goes on with what it has."""


@dataclass(frozen=True)
class Renewed:
    """Certificates were read again: what was in their files before, and is now, by path.

    ``problem``: why they cannot be used, so that those from before stay in use.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    problem: str | None = None


class Renewal:
    """Renews the certificates of ``parts``; ``certificates`` are all their files. Raises CertificateError.

    ``tell`` is called after each renewal.
    """

    def __init__(
        self, parts: Sequence[Renewable], certificates: Sequence[Certificates], tell: Callable[[Renewed], None]
    ) -> None:
        self._parts = parts
        self._certificates = tuple(dict.fromkeys(certificates))
        self._tell = tell
        self._failure: str | None = None
        self._expiries = self._read_expiries()
        self._contents = self._read_contents()

    def run(self) -> None:
        """Have all parts read their certificates again, and log the outcome."""
        failures: dict[str, None] = {}
        for part in self._parts:
            try:
                part.read_again()
            except CertificateError as error:
                failures[str(error)] = None
        contents = self._contents
        try:
            self._expiries = self._read_expiries()
            if not failures:
                contents = self._read_contents()
        except CertificateError as error:
            failures[str(error)] = None
        self._failure = "; ".join(failures) or None
        before, self._contents = self._contents, contents
        self._tell(Renewed(before, contents, self._failure))
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

    def _read_contents(self) -> Mapping[str, Any]:
        return {path: content for each in self._certificates for path, content in summary(each).items()}
