"""Reads an experiment from its file, for the trainer and for ``trainyard lab``. Each fault gets its file and line."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from controller.documents.document import Document
from controller.documents.mapping_file import read_mapping, refusal
from topologies.experiments.experiment import Experiment


def read_experiment(path: Path) -> Experiment:
    """Returns the experiment in a JSON or YAML file. Raises ConfigError: a line with file, line and field per fault."""
    return read_with_lines(path)[0]


def read_with_lines(path: Path) -> tuple[Experiment, Document]:
    """Returns the experiment, and the document with the line of each value. Raises ConfigError."""
    document = read_mapping(path)
    try:
        return Experiment.model_validate(document.data), document
    except ValidationError as error:
        raise refusal(path, document, error, Experiment) from None


def read_quickly(path: Path) -> Experiment:
    """Do as ``read_experiment``, but read a valid JSON file in a hundredth of the time. Programs write such files."""
    if path.suffix == ".json":
        try:
            return Experiment.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            # The slow reader below reports what is wrong, and where.
            pass
    return read_experiment(path)
