"""When certificates and lists of revoked certificates expire, as sentences for the operator."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from controller.access.certificates.contexts import PublicFiles
from controller.access.certificates.pem import read_certificates, read_lists

SOON = timedelta(days=30)
"""Say that a file expires when less than this time is left."""


class Expiries:
    """The dates in ``files`` as they are when it is made. Raises CertificateError."""

    def __init__(self, files: PublicFiles) -> None:
        self._dates = tuple(_dates(files))

    def problems(self, now: datetime | None = None) -> tuple[str, ...]:
        """Returns a sentence for each file that has expired or expires soon. The file is named after a colon."""
        moment = now or datetime.now(UTC)
        return tuple(
            f"{what} {'has expired' if until <= moment else 'expires soon'}: {path} ends at {until:%Y-%m-%d %H:%M} "
            "UTC; replace the file, then trainyard reload"
            for what, path, until in self._dates
            if until - moment < SOON
        )


def _dates(files: PublicFiles) -> Iterator[tuple[str, Path, datetime]]:
    for what, path in (
        ("the controller's certificate", files.certificate),
        ("an authority's certificate", files.authority),
    ):
        if path is not None:
            yield what, path, min(each.not_valid_after_utc for each in read_certificates(path))
    if files.revoked is not None:
        for each in read_lists(files.revoked):
            if each.next_update_utc is not None:
                yield "a list of revoked certificates", files.revoked, each.next_update_utc
