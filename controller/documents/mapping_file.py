"""Reads a YAML file that must hold a mapping, such as the settings file, and words the refusal of its values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import BaseModel, ValidationError

from controller.documents import text_file
from controller.documents.document import Document, DocumentError, field_name
from controller.documents.faults import described_with_lines, kind_of
from controller.documents.likely_secrets import without_secrets
from controller.documents.yaml_lines import read_yaml

MAX_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of a file: its line, counted from 1, its field, and what is wrong. A line or field that is None is not
    known."""

    file: str
    line: int | None
    field: str | None
    problem: str

    def with_more(self, said: str) -> Fault:
        """Returns the fault with more words at its end."""
        return replace(self, problem=f"{self.problem} {said}")

    def without_secrets(self) -> Fault:
        """Returns the fault without what may be a secret that stands in the wrong place of the file."""
        field = without_secrets(self.field) if self.field is not None else None
        return replace(self, field=field, problem=without_secrets(self.problem))

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return ": ".join(part for part in (place, self.field, self.problem) if part)


class ConfigError(ValueError):
    """Settings that cannot be used. The message has one line for each fault.

    ``faults`` are the same faults as values; it is empty if the error has no parts.
    """

    def __init__(self, message: str, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.faults = tuple(faults)

    @classmethod
    def of(cls, faults: Sequence[Fault]) -> ConfigError:
        """Returns the error for these faults."""
        return cls("\n".join(map(str, faults)), faults)


def read_mapping(path: Path) -> Document:
    """Returns the mapping in a file; an empty file holds an empty mapping.

    Raises ConfigError where the file cannot be read, is no valid YAML, or holds no mapping.
    """
    return as_mapping(path, read_bytes(path))


def read_bytes(path: Path, *, only_regular: bool = False) -> bytes:
    """Returns the bytes of a file that ``as_mapping`` takes. ``only_regular`` refuses pipes. Raises ConfigError."""
    try:
        return text_file.read_bytes(path, most_bytes=MAX_BYTES, only_regular=only_regular)
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None


def as_mapping(path: Path, raw: bytes) -> Document:
    """Returns the mapping that the bytes of a file hold. Raises ConfigError, with the file's ``path``."""
    try:
        document = read_yaml(text_file.as_text(path, raw, most_bytes=MAX_BYTES))
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None
    except DocumentError as error:
        fault = Fault(str(path), error.line or 1, None, str(error))
        raise ConfigError.of([fault.without_secrets()]) from None
    if document.data is None:
        return Document({}, document.lines)
    if not isinstance(document.data, dict):
        problem = f"the file holds {kind_of(document.data)}; it must hold settings as 'key: value'"
        raise ConfigError.of([Fault(str(path), 1, None, problem).without_secrets()])
    return document


def refusal(path: Path, document: Document, error: ValidationError, model: type[BaseModel]) -> ConfigError:
    """Returns the error for values that a model refused, with ``file:line: field: problem`` for each fault.

    It shows nothing that may be a secret.
    """
    return ConfigError.of(
        [
            Fault(str(path), line, field_name(at), said).without_secrets()
            for at, line, said in described_with_lines(error, document, model)
        ]
    )
