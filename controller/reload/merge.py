"""The settings that a running controller can take from a changed file: all but those that need a restart. Pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from controller.config.config import Config
from controller.config.dscp import as_dscp
from controller.config.file import SettingsFile
from controller.documents.document import Document
from controller.documents.mapping_file import ConfigError, refusal
from controller.reload.difference import Change


def merged(running: Mapping[str, Any], read: SettingsFile, waiting: Sequence[Change]) -> tuple[dict[str, Any], Config]:
    """Returns what a running controller takes from the file ``read``, as the data of a file and as settings.

    ``running`` is the data of the settings in force; those of ``waiting`` stay as they are there. Raises ConfigError if
    the other changes do not fit to them.
    """
    data = _in_full(copy.deepcopy(read.document.data))
    running = _in_full(running)
    for change in waiting:
        _copy(running, data, change.field.split("."))
    if not waiting:
        return data, read.config
    try:
        return data, Config.model_validate(data)
    except ValidationError as error:
        assert read.path is not None
        found = refusal(read.path, Document(data, read.document.lines), error, Config)
        names = ", ".join(change.field for change in waiting)
        raise ConfigError.of(
            [fault.with_more(f"(until a restart, as {names} can change only then)") for fault in found.faults]
        ) from None


def _in_full(data: Mapping[str, Any]) -> dict[str, Any]:
    """Returns data of settings in which no word stands in the place of a section, so that its parts can be copied."""
    return {**data, "dscp": as_dscp(data["dscp"])} if "dscp" in data else dict(data)


def _copy(source: Mapping[str, Any], target: dict[str, Any], path: Sequence[str]) -> None:
    """Make ``target`` have at ``path`` what ``source`` has there, or nothing if ``source`` has nothing."""
    *above, last = path
    for name in above:
        inner = source.get(name)
        source = inner if isinstance(inner, Mapping) else {}
        if not isinstance(target.get(name), dict):
            target[name] = {}
        target = target[name]
    if last in source:
        target[last] = copy.deepcopy(source[last])
    else:
        target.pop(last, None)
