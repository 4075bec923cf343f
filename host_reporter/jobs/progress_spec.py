"""Where a job file says that progress is read, and the source that reads it."""

from __future__ import annotations

import os
import pwd
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, StringConstraints, model_validator

from controller.wire import JobSpec, Message
from host_reporter.formats import registry
from host_reporter.formats.outputs.line_reader import Declared, LineReader
from host_reporter.formats.outputs.own_pattern import pattern_reader
from host_reporter.formats.outputs.progress_lines import ProgressLines
from host_reporter.formats.outputs.records import JsonReader, TableReader
from host_reporter.formats.preset import Fields
from host_reporter.readers.auto import Wish, auto_source
from host_reporter.readers.location import Kind, Location
from host_reporter.readers.log_source import ProgressSource, Source
from host_reporter.readers.sources.joined import JoinedSource
from host_reporter.readers.sources.newest import NewestSource
from host_reporter.readers.tail import Tail


def possible(path: str) -> str:
    """Returns a path that a file can have. Raises ValueError for others."""
    try:
        is_possible = bool(path) and b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        is_possible = False
    if not is_possible:
        raise ValueError("no file can have this name")
    return path


def _known(name: str) -> str:
    if name != registry.AUTO:
        try:
            registry.of_name(name)
        except registry.FormatError as error:
            raise ValueError(str(error)) from None
    return name


PathText = Annotated[str, AfterValidator(possible)]
_Name = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
_Pattern = Annotated[str, StringConstraints(max_length=4096)]
_Format = Annotated[str, StringConstraints(max_length=127), AfterValidator(_known)]


class FieldsSpec(Message):
    """Which columns of the CSV file, or which fields of the JSON lines, mean what. A field of an inner object has a
    dotted name, as in train.loss."""

    iteration: _Name | None = None
    """How many iterations of the run are done."""
    epoch: _Name | None = None
    """The number of the epoch."""
    epochs: _Name | None = None
    """How many epochs the run has."""
    step: _Name | None = None
    """The step: in the epoch, where epoch or of is there, else in the run."""
    of: _Name | None = None
    """How many steps one epoch has."""
    total: _Name | None = None
    """How many iterations the run has."""
    metric: _Name | None = None
    """The value of the metric."""
    time: _Name | None = None
    """When: seconds since the Unix epoch, or a date as in ISO 8601."""

    @model_validator(mode="after")
    def _counts(self) -> Self:
        if self.iteration is None and self.step is None and self.epoch is None:
            raise ValueError("name the field that says where the run is: iteration, step or epoch")
        return self

    def fields(self) -> Fields:
        """Returns them as a preset has them."""
        named: dict[str, Any] = {name: value or () for name, value in self if name != "metric"}
        return Fields(**named, metrics=(self.metric,) if self.metric is not None else None)


class MetricSource(Message):
    """A file or folder in which the metric is read."""

    log: PathText | None = None
    """A text log of the training, or another file whose kind the agent finds out by itself: CSV, JSON lines,
    trainer_state.json, or a folder of TensorBoard or MLflow. Each path here may have wildcards (*), and the newest file
    counts; ~ is the home of the user who owns the job file."""
    format: _Format = registry.AUTO
    """The format of the log. auto: the agent recognises it."""
    pattern: _Pattern | None = None
    """A regular expression (Python) of your own that finds progress in a line of the log. Its named groups are listed
    below; one of iteration, step and epoch is required."""
    end_pattern: _Pattern | None = None
    """A regular expression. A line of the log that matches it ends the job."""
    csv: PathText | None = None
    """A CSV file with a header. Without fields the agent recognises what its columns mean."""
    jsonl: PathText | None = None
    """A file with one JSON object on each line. Without fields its keys are those listed below."""
    fields: FieldsSpec | None = None
    """Which columns of csv, or fields of jsonl, mean what."""
    tensorboard: PathText | None = None
    """A folder of TensorBoard event files. Of the folders below it that have such files the newest one counts."""
    tag: _Name | None = None
    """The TensorBoard scalar that is the metric. Without it the agent chooses one by its name."""
    metric: _Name | None = None
    """The name of the metric in the log or file. Without it: of several, one of the validation, else a loss."""
    direction: Literal["max", "min"] | None = None
    """Whether a larger (max) or a smaller (min) value of that metric is better. Without it: what its name says."""

    @model_validator(mode="after")
    def _is_one_of_them(self) -> Self:
        if sum(place is not None for place in (self.log, self.csv, self.jsonl, self.tensorboard)) != 1:
            raise ValueError("give either log or csv or jsonl or tensorboard")
        if self.log is None and (self.pattern is not None or self.end_pattern is not None):
            raise ValueError("pattern and end_pattern are for a log, not for csv, jsonl or tensorboard")
        if (self.log is None or self.pattern is not None) and self.format != registry.AUTO:
            raise ValueError("format is for a log without pattern")
        if self.csv is None and self.jsonl is None and self.fields is not None:
            raise ValueError("fields are for csv or jsonl")
        if self.tensorboard is None and self.tag is not None:
            raise ValueError("tag is for tensorboard: the name of the scalar that is the metric")
        return self

    @property
    def path(self) -> str:
        """The path as it is written."""
        return str(self.log or self.csv or self.jsonl or self.tensorboard)

    @property
    def declared(self) -> Declared:
        """What it says of the metric."""
        return Declared(self.tag or self.metric, self.direction)


class ProgressSpec(MetricSource):
    """Where progress is read: a log, CSV, JSON lines, or a TensorBoard folder."""

    metric_from: MetricSource | None = None
    """A second file or folder, with the metric, where the first one has the iterations alone."""


def resolved(job_file: Path, text: str) -> Path:
    """Returns a path of a job file: from its folder, and ``~`` is the home of the user who owns the job file."""
    if text == "~" or text.startswith("~/"):
        try:
            home = pwd.getpwuid(job_file.stat().st_uid).pw_dir
        except (OSError, KeyError):
            return Path(text)
        return Path(home) / text[2:]
    return job_file.parent / (os.path.expanduser(text) if text.startswith("~") else text)  # noqa: PTH111 - no RuntimeError


def progress_source(spec: ProgressSpec, job_file: Path, job: JobSpec | None) -> ProgressSource:
    """Returns the source of a job's progress. ``job``: what the job declares, such as its metric."""
    declared = _declared(spec, job)
    first = _source(spec, resolved(job_file, spec.path), declared)
    second = spec.metric_from
    if second is None:
        return first
    return JoinedSource(first, _source(second, resolved(job_file, second.path), _declared(second, job)))


def _declared(spec: MetricSource, job: JobSpec | None) -> Declared:
    """Returns the metric that the progress declares, else the one of the job's spec, where it names one."""
    own = spec.declared
    if job is None:
        return own
    if "metric" not in job.model_fields_set:
        return replace(own, iterations=job.iterations)
    direction = job.metric.direction if "direction" in job.metric.model_fields_set else None
    if own.metric is not None:
        return Declared(own.metric, own.direction or direction, job.iterations)
    name = job.metric.name if "name" in job.metric.model_fields_set else None
    return Declared(name, own.direction or direction, job.iterations)


def _source(spec: MetricSource, path: Path, declared: Declared) -> ProgressSource:
    location = Location(path, str(path), _kind(spec))
    own = _own_reader(spec, declared)
    if own is not None:
        # What a wildcard finds is no link: another user than the job file's may have put it there.
        return NewestSource(path, lambda found: Source(Tail(found, follow_links=found == path), own), at_once=True)
    matcher = registry.of_name(spec.format) if spec.format != registry.AUTO else None
    return auto_source(location, Wish(matcher, declared, spec.end_pattern))


def _own_reader(spec: MetricSource, declared: Declared) -> LineReader | None:
    """Returns the reader of what the job file itself explains; None where the format is to be recognised."""
    if spec.pattern is not None:
        return pattern_reader(spec.pattern, declared, spec.end_pattern)
    if spec.jsonl is not None and spec.fields is None:
        return ProgressLines()
    if spec.fields is None:
        return None
    reader = TableReader if spec.csv is not None else JsonReader
    return reader({}, declared, spec.fields.fields())


def _kind(spec: MetricSource) -> Kind | None:
    return "csv" if spec.csv is not None else "tensorboard" if spec.tensorboard is not None else None
