"""Job files: they say what a job is, for the controller, and where its progress is, for the agent. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from controller.documents.document import Document, DocumentError
from controller.documents.faults import described_with_lines, in_lines
from controller.documents.json_lines import read_json
from controller.wire import NAME_PATTERN, JobSpec, Message, Name
from host_reporter.formats.matching import PatternError
from host_reporter.formats.outputs.own_pattern import check
from host_reporter.formats.outputs.progress_lines import ProgressLines
from host_reporter.jobs.job import JobProcesses
from host_reporter.jobs.progress_spec import PathText, ProgressSpec, possible, progress_source, resolved
from host_reporter.readers.log_source import ProgressSource, Source
from host_reporter.readers.tail import Tail

SUFFIXES = (".json", ".yaml", ".yml")
MAX_FILE_BYTES = 4 * 2**20
MAX_YAML_VALUES = 100_000
"""Read at most this many values from a YAML file; a larger job is written as JSON, which is read faster."""

MAX_GROUP_PATH = 500
"""Refuse longer paths of cgroups, since iptables takes 512 bytes."""

_PROBLEMS_TOLD = 3
_NAME = re.compile(NAME_PATTERN)


class JobFileError(ValueError):
    """A job file that cannot be used; the message names the field and says what would be right.

    ``line`` is where, if that is known.
    """

    def __init__(self, problem: str, line: int | None = None) -> None:
        super().__init__(problem)
        self.line = line


def _one_group(path: str) -> str:
    parts = path.split("/")
    if (
        not path.startswith("/")
        or not {".", ".."}.isdisjoint(parts)
        or not path.isprintable()
        or any(char in path for char in '"\0')
    ):
        raise ValueError("a cgroup is a path from the hierarchy's root, as after 0:: in /proc/PID/cgroup: /jobs/resnet")
    if not path.strip("/"):
        raise ValueError("the root of the hierarchy holds every process; name the job's own group")
    if len(path) > MAX_GROUP_PATH:
        raise ValueError(f"a path of more than {MAX_GROUP_PATH} characters cannot be matched")
    return path.rstrip("/")


_GroupText = Annotated[str, AfterValidator(possible), AfterValidator(_one_group)]


class TrialsSpec(Message):
    """The trials of a tuner's study: where they write their progress, and how many are followed at a time."""

    folder: PathText | None = None
    """The folder of the trials' progress files, ID.TRIAL.jsonl. Without it: the agent's folder (--progress-dir)."""
    most: Annotated[int, Field(ge=1, le=256)] = 64
    """How many trials are followed at a time. Others wait until one of these ends."""


class JobDocument(Message):
    """A job file: what a job is, and where its progress and its processes are. Relative paths count from the folder of
    the file."""

    id: Name
    """The name of the job. It is the same on all hosts of the job."""
    spec: JobSpec | None = None
    """What the job declares to the controller. Without it somebody else registers the job."""
    progress: ProgressSpec | None = None
    """Where the progress of the job is read. Without it the job writes ID.jsonl into the agent's folder
    (--progress-dir), as the Python helper does."""
    study: Name | None = None
    """The study of the job: the stages that its progress names are stages of this study."""
    trials: TrialsSpec | None = None
    """The file describes a tuner's study. Each of its trials is a job with this spec. Such a file has no progress,
    study, cgroup, pid or pidfile."""
    cgroup: _GroupText | None = None
    """The cgroup of the job's processes, as after 0:: in /proc/PID/cgroup. The agent finds their connections. Give at
    most one of cgroup, pid and pidfile; without any, only the ports that the spec names are the job's traffic."""
    pid: Annotated[int, Field(ge=2, lt=2**31)] | None = None
    """The process whose connections are the job's, together with those of its descendants."""
    pidfile: PathText | None = None
    """A file that holds the number of that process."""

    @model_validator(mode="after")
    def _is_in_one_place(self) -> Self:
        places = sum(place is not None for place in (self.cgroup, self.pid, self.pidfile))
        if places > 1:
            raise ValueError("give one of cgroup, pid and pidfile")
        if places and self.trials is not None:
            raise ValueError(
                "a study's trials are different processes: give each trial whose sockets are to be found a job file"
            )
        return self

    @model_validator(mode="after")
    def _is_a_job_or_a_study(self) -> Self:
        if self.trials is not None and (self.progress is not None or self.study is not None):
            raise ValueError("a file with trials has neither progress nor study: each trial's progress is its own")
        if (
            (self.trials is not None or self.study is not None)
            and self.spec is not None
            and self.spec.stage is not None
        ):
            raise ValueError("a study's trials report its stages; leave spec.stage out")
        return self


@dataclass(frozen=True)
class JobFile:
    """A job file that was understood. ``path`` is the file's own, ``followed`` that of its progress.

    Of a study (``trials``) ``followed`` is the folder of its trials' progress files.
    ``processes`` says where its processes are; None: the file does not say it.
    """

    path: Path
    id: str
    spec: JobSpec | None
    progress: ProgressSpec | None
    followed: Path
    study: str | None = None
    trials: TrialsSpec | None = None
    is_trial: bool = False
    processes: JobProcesses | None = None
    is_running: bool = False

    @property
    def progress_key(self) -> tuple[Path, ProgressSpec | None]:
        """What tells where its progress is read."""
        return self.followed, self.progress

    def source(self) -> ProgressSource:
        """Its progress, from the beginning. In the helper's folder, which is anyone's, links are not followed."""
        if self.progress is not None:
            return progress_source(self.progress, self.path, self.spec)
        return Source(Tail(self.followed, follow_links=False), ProgressLines())

    def trial(self, suffix: str) -> JobFile:
        """The job of one of the study's trials. Raises ValueError where it could have no id."""
        job = f"{self.id}.{suffix}"
        if not _NAME.fullmatch(job):
            raise ValueError(f"{job} is no job's id")
        followed = self.followed / f"{job}.jsonl"
        return JobFile(self.path, job, self.spec, None, followed, study=self.id, is_trial=True)


def read_job_file(path: Path, text: str, progress_dir: Path) -> JobFile:
    """The job file at ``path`` with this text. Raises JobFileError.

    Relative paths in it count from its own folder; ``progress_dir`` is where the helper writes.
    """
    try:
        written = read_json(text) if path.suffix == ".json" else _read_yaml(text)
    except DocumentError as error:
        raise JobFileError(str(error), error.line) from error
    document = _document(written)
    progress, processes = document.progress, _processes(path, document)
    try:
        if document.trials is not None:
            folder = path.parent / document.trials.folder if document.trials.folder is not None else progress_dir
            return JobFile(path, document.id, document.spec, None, folder, trials=document.trials)
        if progress is None:
            followed = progress_dir / f"{document.id}.jsonl"
        else:
            for part in (progress, progress.metric_from):
                if part is not None:
                    check(part.pattern, part.end_pattern)
            followed = resolved(path, progress.path)
        return JobFile(path, document.id, document.spec, progress, followed, study=document.study, processes=processes)
    except PatternError as error:
        raise JobFileError(f"progress.{error}", written.line(("progress", str(error).partition(":")[0]))) from error


def _read_yaml(text: str) -> Document:
    from controller.documents.yaml_lines import read_yaml  # noqa: PLC0415 - its import is slow, and JSON needs none

    return read_yaml(text, most_values=MAX_YAML_VALUES)


def _processes(path: Path, document: JobDocument) -> JobProcesses | None:
    if document.cgroup is not None:
        return JobProcesses(path, cgroup=document.cgroup)
    if document.pid is not None:
        return JobProcesses(path, pid=document.pid)
    if document.pidfile is not None:
        file = path.parent / document.pidfile
        return JobProcesses(file, pidfile=file)
    return None


def _document(written: Document) -> JobDocument:
    try:
        return JobDocument.model_validate(written.data)
    except ValidationError as error:
        faults = described_with_lines(error, written, JobDocument)[:_PROBLEMS_TOLD]
        first = faults[0][1]
        texts = in_lines([(field, said) for field, _, said in faults])
        shown = [
            text if line == first else f"line {line}: {text}" for (_, line, _), text in zip(faults, texts, strict=True)
        ]
        raise JobFileError("; ".join(shown), first) from error
