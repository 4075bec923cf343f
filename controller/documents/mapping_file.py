"""Reads a YAML file that must hold a mapping, such as the settings file, and words the refusal of its values."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError

from controller.documents import text_file
from controller.documents.document import Document, DocumentError, field_name
from controller.documents.faults import described_with_lines, kind_of
from controller.documents.yaml_lines import read_yaml

MAX_BYTES = 16 * 2**20


class ConfigError(ValueError):
    """Settings that cannot be used. The message has one line for each fault."""


def read_mapping(path: Path) -> Document:
    """Returns the mapping in a file; an empty file holds an empty mapping.

    Raises ConfigError where the file cannot be read, is no valid YAML, or holds no mapping.
    """
    try:
        document = read_yaml(text_file.read(path, most_bytes=MAX_BYTES))
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None
    except DocumentError as error:
        raise ConfigError(f"{path}:{error.line or 1}: {error}") from None
    if document.data is None:
        return Document({}, document.lines)
    if not isinstance(document.data, dict):
        raise ConfigError(f"{path}:1: the file holds {kind_of(document.data)}; it must hold settings as 'key: value'")
    return document


def refusal(path: Path, document: Document, error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Returns the error for values that a model refused, with ``file:line: field: problem`` for each fault."""
    return ConfigError(
        "\n".join(
            f"{path}:{line}: {field_name(at)}: {said}"
            for at, line, said in described_with_lines(error, document, model)
        )
    )
