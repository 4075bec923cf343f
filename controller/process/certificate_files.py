"""What is in the files of certificates that the settings name, and when each expires."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controller.access.certificates.contexts import CertificateError, PublicFiles
from controller.access.certificates.expiry import Expiries
from controller.access.certificates.summary import summary
from controller.config.config import Config, ConfigError
from controller.reload.difference import Change
from controller.reload.part import Prepared


class CertificateFiles:
    """Watches the dates in the files of ``config``. Raises CertificateError."""

    def __init__(self, config: Config) -> None:
        self._problems, self._contents = _read(config)

    def problems(self) -> tuple[str, ...]:
        """Returns a sentence for each file that has expired or expires soon. The file is named after a colon."""
        return tuple(dict.fromkeys(problem for each in self._problems for problem in each.problems()))

    def prepare(self, config: Config) -> Prepared:
        """Read the files of other settings. The changes are those inside of files. Raises ConfigError."""
        try:
            dates, contents = _read(config)
        except CertificateError as error:
            raise ConfigError(str(error)) from error
        before = self._contents

        def use() -> None:
            self._problems, self._contents = dates, contents

        return Prepared(
            use,
            tuple(
                Change(path, before[path], contents[path])
                for path in contents
                if path in before and before[path] != contents[path]
            ),
        )


def _read(config: Config) -> tuple[tuple[Expiries, ...], Mapping[str, Any]]:
    files = tuple(dict.fromkeys(_files(config)))
    contents = {path: content for each in files for path, content in summary(each).items()}
    return tuple(map(Expiries, files)), contents


def _files(config: Config) -> Iterator[PublicFiles]:
    if config.openflow.tls is not None:
        yield config.openflow.tls.certificates.public
    if config.database_certificates is not None:
        yield config.database_certificates.public
    if config.api.tls_certificate is not None:
        yield PublicFiles(config.api.tls_certificate, config.api.client_authority, config.api.client_revoked)
