"""Job files: what a job is, for the controller, and where its progress is told, for the agent. Text in, value out."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, StringConstraints, ValidationError, model_validator

from controller.wire import JobSpec, Message, Name
from host_reporter.document import Document, TextError, read_json, read_yaml
from host_reporter.parse import LineParser, PatternError, json_parser, log_parser
from host_reporter.source import Source
from host_reporter.tail import Tail

SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILE_BYTES = 4 * 2**20
_PROBLEMS_TOLD = 3


class JobFileError(ValueError):
    """A job file that cannot be used; the message names the field and says what would be right.

    ``line`` is where, if that is known.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def _possible(path: str) -> str:
    try:
        possible = bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        possible = False
    if not possible:
        raise ValueError("no file can have this name")
    return path


_PathText = Annotated[str, AfterValidator(_possible)]
_Pattern = Annotated[str, StringConstraints(max_length=4096)]


class ProgressSpec(Message):
    """Where progress is told: a training log with a regular expression, or a JSON-lines file."""

    log: _PathText | None = None
    pattern: _Pattern | None = None
    end_pattern: _Pattern | None = None
    jsonl: _PathText | None = None

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
    try:
        written = read_json(text) if path.suffix == ".json" else read_yaml(text)
    except TextError as error:
        raise JobFileError(str(error), error.line) from error
    document = _document(written)
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
        raise JobFileError(f"progress.{error}", written.line(("progress", str(error).partition(":")[0]))) from error


def _document(written: Document) -> JobDocument:
    try:
        return JobDocument.model_validate(written.data)
    except ValidationError as error:
        places = [problem["loc"] for problem in error.errors(include_url=False, include_input=False)]
        lines = [written.line(place) for place in places[:_PROBLEMS_TOLD]]
        told = [
            f"line {line}: {problem}" if line is not None and line != lines[0] else problem
            for line, problem in zip(lines, describe(error), strict=False)
        ]
        raise JobFileError("; ".join(told), lines[0]) from error


def describe(error: ValidationError) -> list[str]:
    """The problems of a message, each as ``field: what is wrong``."""
    found = []
    for problem in error.errors(include_url=False, include_input=False, include_context=False):
        field = ".".join(str(part) for part in problem["loc"])
        text = problem["msg"].removeprefix("Value error, ")
        found.append(f"{field}: {text}" if field else text)
    return found
