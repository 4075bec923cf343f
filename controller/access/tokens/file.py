"""Reads the tokens file."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from controller.access.tokens.entries import TokenTable, parse
from controller.documents import text_file
from controller.documents.document import DocumentError
from controller.documents.mapping_file import ConfigError, Fault
from controller.documents.yaml_lines import read_yaml

MAX_BYTES = 2**20


def read_tokens(path: Path, hosts: Collection[str]) -> TokenTable:
    """Returns the entries of a file. ``hosts`` are those in the settings. Raises ConfigError, with a line a fault."""
    try:
        document = read_yaml(text_file.read(path, most_bytes=MAX_BYTES, only_regular=True))
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None
    except DocumentError as error:
        fault = Fault(str(path), error.line or 1, None, str(error))
        raise ConfigError.of([fault.without_secrets()]) from None
    entries, faults = parse(document, hosts)
    if faults:
        lines = document.lines([at for at, _ in faults])
        raise ConfigError.of(
            [
                Fault(str(path), line, ".".join(map(str, at)) or None, said).without_secrets()
                for (at, said), line in zip(faults, lines, strict=True)
            ]
        )
    return TokenTable(entries)
