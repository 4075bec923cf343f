"""An experiment from its file, for the trainer and for ``trainyard lab``; every fault with its file and line."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from controller.documents.document import Document
from controller.documents.mapping_file import read_mapping, refusal
from topologies.experiments.experiment import Experiment


def read_experiment(path: Path) -> Experiment:
    """The experiment in a JSON or YAML file. Raises ConfigError, one line a fault with file, line and field."""
    return read_with_lines(path)[0]


def read_with_lines(path: Path) -> tuple[Experiment, Document]:
    """The experiment, and where in its file everything stands. Raises ConfigError."""
    document = read_mapping(path)
    try:
        return Experiment.model_validate(document.data), document
    except ValidationError as error:
        raise refusal(path, document, error, Experiment) from None


def read_quickly(path: Path) -> Experiment:
    """As ``read_experiment``. For programs' own files: JSON without a fault takes a hundredth of the time."""
    if path.suffix == ".json":
        try:
            return Experiment.model_validate_json(path.read_bytes())
        except (OSError, ValidationError):
            # The slow way says what is wrong, and where.
            pass
    return read_experiment(path)
