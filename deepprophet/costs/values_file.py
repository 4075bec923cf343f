"""Reads YAML and JSON files that people write for a prediction as checked values, or says what is wrong and where."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from controller.documents import text_file
from controller.documents.document import DocumentError, field_name
from controller.documents.faults import described_with_lines
from controller.wire import Message
from deepprophet.errors import InputError

MAX_FILE_BYTES = 4 * 2**20

Values = TypeVar("Values", bound=Message)


def read(path: Path, kind: type[Values], holds: str) -> Values:
    """The values of a file; ``holds``: what it must have, for people. Raises InputError, with the line and field."""
    from controller.documents.yaml_lines import read_yaml  # noqa: PLC0415 - its import is slow, and few predictions need it

    try:
        document = read_yaml(text_file.read(path, holds=holds, most_bytes=MAX_FILE_BYTES))
    except text_file.FileError as error:
        raise InputError(str(error)) from error
    except DocumentError as error:
        raise InputError(f"{path}:{error.line or 1}: {error}") from error
    if not isinstance(document.data, dict):
        raise InputError(f"{path}:1: it must be keys with values: {', '.join(kind.model_fields)}")
    try:
        return kind.model_validate(document.data)
    except ValidationError as error:
        at, line, reason = described_with_lines(error, document, kind)[0]
        field = f"{field_name(at)}: " if at else ""
        raise InputError(f"{path}:{line}: {field}{reason}") from error
