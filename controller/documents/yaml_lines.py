"""YAML with line numbers: what a settings file says, where it says so, and what is wrong there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from controller.documents import text_file
from controller.documents.faults import Place, described, field_name, kind_of

MAX_BYTES = 16 * 2**20
MAX_DEPTH = 50
MAX_VALUES = 300_000
"""Of a whole file; an anchor's values count wherever they are repeated."""


class ConfigError(ValueError):
    """Settings that cannot be used. The message has one line a fault, for the operator."""


@dataclass(frozen=True)
class Document:
    """A parsed file: its values, and the line of each by its path of keys and indices."""

    path: Path | None
    data: Any = field(default_factory=dict)
    lines: Mapping[Place, int] = field(default_factory=dict)

    def where(self, place: Place) -> str:
        """``file:line: field`` of a place, or of the nearest place around it that the file has."""
        name = field_name(place)
        if self.path is None:
            return f"settings: {name}"
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        return f"{self.path}:{self.lines.get(known, 1)}: {name}"


class _Loader(yaml.SafeLoader):
    """YAML's safe types, and numbers such as 1e9, which YAML 1.1 takes for text. No deeper than settings are."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            event: Any = self.peek_event()  # type: ignore[no-untyped-call]  # its stubs have no types
            raise yaml.MarkedYAMLError(problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=event.start_mark)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def read_document(path: Path) -> Document:
    """Parse ``path``; raises ConfigError for what is no YAML mapping, a duplicate key or an unreadable file."""
    try:
        text = text_file.read(path, most_bytes=MAX_BYTES)
    except text_file.FileError as error:
        raise ConfigError(str(error)) from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        walk = _Walk(loader, path)
        data = {} if node is None else walk.value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{path}:{line}: {error.problem or error.context}; this is no valid YAML") from None
    except ConfigError:
        raise
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            f"{path}:{line}: character {error.character:#x} may not be in it; this is no valid YAML"
        ) from None
    except Exception as error:
        # Whatever the library stumbles over is a fault of the file.
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{path}:1: {reason}; this is no valid YAML") from None
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigError(f"{path}:1: the file holds {kind_of(data)}; it must hold settings as 'key: value'")
    return Document(path, data, walk.lines)


class _Walk:
    """Turns YAML nodes into values, and notes the line of each."""

    def __init__(self, loader: _Loader, path: Path) -> None:
        self._loader = loader
        self._path = path
        self._count = 0
        self.lines: dict[Place, int] = {}

    def value(self, node: yaml.Node, place: Place = (), around: tuple[int, ...] = ()) -> Any:
        """The value of a node; ``around`` are the nodes that contain it."""
        self._count += 1
        if self._count > MAX_VALUES:
            raise self._error(node, (), f"more than {MAX_VALUES} values; settings are few")
        self.lines.setdefault(place, node.start_mark.line + 1)
        if id(node) in around:
            raise self._error(node, place, "contains itself")
        inside = (*around, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*place, i), inside) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place, inside)
        try:
            return self._loader.construct_object(node)
        except yaml.MarkedYAMLError:
            raise
        except Exception:
            # A tag that the value contradicts: the library fails at it in many ways.
            problem = f"{str(node.value)[:40]!r} is no {node.tag.rpartition(':')[2]}; this is no valid YAML"
            raise self._error(node, place, problem) from None

    def _mapping(self, node: yaml.MappingNode, place: Place, inside: tuple[int, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._error(key_node, place, "a key must be a word")
            inner = (*place, key_node.value)
            if key_node.value in result:
                raise self._error(key_node, inner, f"given twice, first in line {self.lines[inner]}; keep one")
            self.lines[inner] = key_node.start_mark.line + 1
            result[key_node.value] = self.value(value_node, inner, inside)
        return result

    def _error(self, node: yaml.Node, place: Place, problem: str) -> ConfigError:
        return ConfigError(f"{self._path}:{node.start_mark.line + 1}: {field_name(place)}: {problem}")


def describe(error: ValidationError, document: Document, model: type[BaseModel]) -> str:
    """One line a fault: where, what is wrong, what would be right."""
    return "\n".join(f"{document.where(place)}: {said}" for place, said in described(error, document.data, model))
