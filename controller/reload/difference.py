"""The difference between two settings, field by field, and which of them a running controller cannot change. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, SecretStr

from controller.config.config import Config
from controller.config.hosts import HostEntry, InterfaceEntry
from controller.config.sections import LinkEntry

NEED_RESTART = frozenset(
    {
        "api.host",
        "api.metrics_host",
        "api.metrics_port",
        "api.port",
        "audit.file",
        "audit.keep",
        "audit.max_bytes",
        "classes",
        "dscp.acknowledgements",
        "dscp.classes",
        "dscp.other",
        "dscp.preset",
        "enforce",
        "forwarding",
        "identity",
        "journal",
        "lossless",
        "mode",
        "openflow.host",
        "openflow.port",
        "ovsdb",
        "queues",
    }
)
"""Settings that are used once, when the controller starts: its listeners, its files, where it enforces, and the layout
of its queues and tables."""
MADE_AT_START = frozenset({"api.tls_certificate", "api.tls_key", "openflow.tls"})
"""Settings that need a restart where they are set for the first time, or are no longer set: a listener speaks TLS or
does not. Another file in the place of one changes at once."""
SET, CHANGED = "(set)", "(changed)"
"""What is shown of a secret."""


@dataclass(frozen=True, slots=True)
class Change:
    """A setting that differs: its field, such as ``hosts.node1.ingress_bps``, and its values as in JSON.

    None stands for a value that is not set. Of a secret it shows only whether it is set or has changed.
    """

    field: str
    before: Any
    after: Any

    @property
    def needs_restart(self) -> bool:
        """Whether a running controller cannot change the setting."""
        if self.field in MADE_AT_START:
            return self.before is None or self.after is None
        return self.field in NEED_RESTART

    def __str__(self) -> str:
        return f"{self.field}: {json.dumps(self.before)} -> {json.dumps(self.after)}"


def changes(before: Config, after: Config) -> tuple[Change, ...]:
    """Returns the settings that differ, in the order of the settings file."""
    return tuple(_models("", before, after))


def _models(prefix: str, before: BaseModel, after: BaseModel) -> Iterator[Change]:
    for name in type(after).model_fields:
        yield from _values(f"{prefix}{name}", getattr(before, name), getattr(after, name))


def _values(field: str, before: Any, after: Any) -> Iterator[Change]:
    if field not in NEED_RESTART:
        if isinstance(before, BaseModel) and isinstance(after, BaseModel):
            yield from _models(f"{field}.", before, after)
            return
        if _is_named(before) and _is_named(after):
            yield from _mappings(field, _by_name(before), _by_name(after))
            return
    if isinstance(before, SecretStr) and isinstance(after, SecretStr):
        if before != after:
            yield Change(field, SET, CHANGED)
    elif before != after:
        yield Change(field, _as_json(before), _as_json(after))


def _mappings(field: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        yield from _values(f"{field}.{name}", before.get(name), after.get(name))


def _is_named(value: Any) -> bool:
    """Returns whether a value consists of entries with names. An empty one may be of any kind."""
    entries = value if isinstance(value, Sequence) and not isinstance(value, str) else ()
    return isinstance(value, Mapping) or (
        isinstance(value, tuple) and all(isinstance(entry, HostEntry | InterfaceEntry | LinkEntry) for entry in entries)
    )


def _by_name(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return {str(name): entry for name, entry in value.items()}
    return {_name(entry): entry for entry in value}


def _name(entry: HostEntry | InterfaceEntry | LinkEntry) -> str:
    if isinstance(entry, HostEntry | InterfaceEntry):
        return entry.name
    return f"{entry.a:x}:{entry.a_port}-{entry.b:x}:{entry.b_port}"


def _as_json(value: Any) -> Any:
    """Returns a value as in JSON, without its secrets."""
    if isinstance(value, SecretStr):
        return SET
    if isinstance(value, BaseModel):
        return {name: _as_json(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(name): _as_json(entry) for name, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_as_json(entry) for entry in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
