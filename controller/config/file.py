"""A settings file as it was read, with what identifies its contents."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from controller.config.config import Config, checked
from controller.documents.document import Document
from controller.documents.mapping_file import as_mapping, read_bytes


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """A settings file: its values with their lines, the settings that they make, and the SHA-256 of its bytes.

    Without a file ``path`` and ``sha256`` (hexadecimal) are None, and the settings have their defaults.
    """

    path: Path | None
    document: Document
    config: Config
    sha256: str | None


def read_settings(path: Path | None) -> SettingsFile:
    """Returns the settings file at ``path``; None gives the defaults. Raises ConfigError as ``load_config`` does."""
    if path is None:
        return SettingsFile(None, Document({}, lambda paths: [1 for _ in paths]), Config.default(), None)
    raw = read_bytes(path, only_regular=True)
    document = as_mapping(path, raw)
    return SettingsFile(path, document, checked(path, document), hashlib.sha256(raw).hexdigest())
