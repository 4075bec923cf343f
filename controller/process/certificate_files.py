"""What is in the files of certificates that the settings name, and when each expires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from controller.access.certificates.contexts import CertificateError, PublicFiles
from controller.access.certificates.expiry import Expiries
from controller.access.certificates.summary import summary
from controller.config.config import Config, ConfigError
from controller.reload.difference import Change
from controller.reload.part import Prepared

Use = Literal["openflow", "ovsdb", "api"]
"""What certificates are for: switches, their databases, or the REST API."""


class CertificateFiles:
    """Watches the dates in the files of ``config``. Raises CertificateError."""

    def __init__(self, config: Config) -> None:
        self._dates, self._contents = _read(config)

    def problems(self) -> tuple[str, ...]:
        """Returns a sentence for each file that has expired or expires soon. The file is named after a colon."""
        return tuple(dict.fromkeys(problem for _, each in self._dates for problem in each.problems()))

    def ends(self) -> Mapping[tuple[str, str], float]:
        """Returns when what is in the files expires, by use and kind, in seconds since the Unix epoch.

        Of several that are for the same, the first end is given.
        """
        first: dict[tuple[str, str], float] = {}
        for use, each in self._dates:
            for end in each.ends:
                until = end.until.timestamp()
                first[use, end.kind] = min(until, first.get((use, end.kind), until))
        return first

    def prepare(self, config: Config) -> Prepared:
        """Read the files of other settings. The changes are those inside of files. Raises ConfigError."""
        try:
            dates, contents = _read(config)
        except CertificateError as error:
            raise ConfigError(str(error)) from error
        before = self._contents

        def use() -> None:
            self._dates, self._contents = dates, contents

        return Prepared(
            use,
            tuple(
                Change(path, before[path], contents[path])
                for path in contents
                if path in before and before[path] != contents[path]
            ),
        )


def _read(config: Config) -> tuple[tuple[tuple[Use, Expiries], ...], Mapping[str, Any]]:
    files = tuple(_files(config))
    contents = {path: content for _, each in files for path, content in summary(each).items()}
    return tuple((use, Expiries(each)) for use, each in files), contents


def _files(config: Config) -> Iterator[tuple[Use, PublicFiles]]:
    if config.openflow.tls is not None:
        yield "openflow", config.openflow.tls.certificates.public
    if config.database_certificates is not None:
        yield "ovsdb", config.database_certificates.public
    if config.api.tls_certificate is not None:
        yield "api", PublicFiles(config.api.tls_certificate, config.api.client_authority, config.api.client_revoked)
