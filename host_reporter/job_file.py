"""Job files: what a job is, for the controller, and where its progress is told, for the agent. Text in, value out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError, model_validator

from controller.wire import JobSpec, Message, Name
from host_reporter.parse import LineParser, PatternError, json_parser, log_parser
from host_reporter.source import Source
from host_reporter.tail import Tail

SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILE_BYTES = 4 * 2**20
_PROBLEMS_TOLD = 3


class JobFileError(ValueError):
    """A job file that cannot be used; the message names the field and says what would be right."""


class ProgressSpec(Message):
    """Where progress is told: a training log with a regular expression, or a JSON-lines file."""

    log: str | None = None
    pattern: str | None = None
    end_pattern: str | None = None
    jsonl: str | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.log is None) == (self.jsonl is None):
            raise ValueError("give either log (with pattern) or jsonl")
        if self.log is not None and self.pattern is None:
            raise ValueError("a log needs pattern, a regular expression with a named group iteration")
        if self.jsonl is not None and (self.pattern is not None or self.end_pattern is not None):
            raise ValueError("pattern and end_pattern are for a log, not for jsonl")
        return self


class JobDocument(Message):
    """A job file. Without ``spec`` the job is registered by someone else; without ``progress`` the helper tells it."""

    id: Name
    spec: JobSpec | None = None
    progress: ProgressSpec | None = None


@dataclass(frozen=True)
class JobFile:
    """A job file that was understood. ``path`` is the file's own, ``followed`` that of its progress."""

    path: Path
    id: str
    spec: JobSpec | None
    progress: ProgressSpec | None
    followed: Path
    parse: LineParser

    def source(self) -> Source:
        """Its progress, from the beginning. In the helper's folder, which is anyone's, links are not followed."""
        return Source(Tail(self.followed, follow_links=self.progress is not None), self.parse)


def read_job_file(path: Path, text: str, progress_dir: Path) -> JobFile:
    """The job file at ``path`` with this text. Raises JobFileError.

    Relative paths in it count from its own folder; ``progress_dir`` is where the helper writes.
    """
    document = _document(path, text)
    progress = document.progress
    try:
        if progress is None:
            return JobFile(path, document.id, document.spec, None, progress_dir / f"{document.id}.jsonl", json_parser)
        if progress.jsonl is not None:
            followed = path.parent / progress.jsonl
            return JobFile(path, document.id, document.spec, progress, followed, json_parser)
        assert progress.log is not None and progress.pattern is not None
        parse = log_parser(progress.pattern, progress.end_pattern)
        return JobFile(path, document.id, document.spec, progress, path.parent / progress.log, parse)
    except PatternError as error:
        raise JobFileError(f"progress.{error}") from error


def _document(path: Path, text: str) -> JobDocument:
    try:
        return JobDocument.model_validate(_parsed(path, text))
    except ValidationError as error:
        raise JobFileError("; ".join(describe(error)[:_PROBLEMS_TOLD])) from error
    except (ValueError, RecursionError) as error:
        raise JobFileError(" ".join(str(error).split())) from error


def _parsed(path: Path, text: str) -> object:
    """JSON or YAML by the file's name. Raises ValueError."""
    if path.suffix == ".json":
        return json.loads(text)
    import yaml  # noqa: PLC0415 - only who writes YAML pays for its import

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are the safe ones
    except yaml.YAMLError as error:
        raise ValueError(f"no YAML: {error}") from error


def describe(error: ValidationError) -> list[str]:
    """The problems of a message, each as ``field: what is wrong``."""
    found = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        field = ".".join(str(part) for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        found.append(f"{field}: {text}" if field else text)
    return found
