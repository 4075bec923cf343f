"""When certificates and lists of revoked certificates expire, in sentences for the operator, and as times."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal, NamedTuple

from controller.access.certificates.contexts import PublicFiles
from controller.access.certificates.pem import read_certificates, read_lists

SOON = timedelta(days=30)
"""Say that a file expires when less than this time is left."""
Kind = Literal["certificate", "authority", "revoked"]
_WORDS: dict[Kind, str] = {
    "certificate": "the controller's certificate",
    "authority": "an authority's certificate",
    "revoked": "a list of revoked certificates",
}


class End(NamedTuple):
    """When what is in a file expires."""

    kind: Kind
    path: Path
    until: datetime


class Expiries:
    """The dates in ``files`` as they are when it is made. Raises CertificateError."""

    def __init__(self, files: PublicFiles) -> None:
        self.ends = tuple(_ends(files))

    def problems(self, now: datetime | None = None) -> tuple[str, ...]:
        """Returns a sentence for each file that has expired or expires soon. The file is named after a colon."""
        moment = now or datetime.now(UTC)
        return tuple(
            f"{_WORDS[end.kind]} {'has expired' if end.until <= moment else 'expires soon'}: {end.path} ends at "
            f"{end.until:%Y-%m-%d %H:%M} UTC; replace the file, then trainyard reload"
            for end in self.ends
            if end.until - moment < SOON
        )


def _ends(files: PublicFiles) -> Iterator[End]:
    if files.certificate is not None:
        yield End("certificate", files.certificate, _first_end(files.certificate))
    if files.authority is not None:
        yield End("authority", files.authority, _first_end(files.authority))
    if files.revoked is not None:
        for each in read_lists(files.revoked):
            if each.next_update_utc is not None:
                yield End("revoked", files.revoked, each.next_update_utc)


def _first_end(path: Path) -> datetime:
    return min(each.not_valid_after_utc for each in read_certificates(path))
