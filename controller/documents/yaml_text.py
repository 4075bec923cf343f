"""YAML that people write: values, and the line of each. Whatever a text is, it is understood or refused in one line.

The library's C parser is quick, but its composer recurses until the process dies; so its events are composed here,
to a depth and size that settings have. Only plain values come out; anchors may repeat them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from controller.documents.document import TextError

MAX_DEPTH = 50
MAX_VALUES = 100_000


class _Resolver(Resolver):
    """YAML's plain values, and numbers such as 1e9, which YAML 1.1 takes for text."""


_Resolver.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class _Reader(Composer, SafeConstructor, _Resolver):
    """Composes nodes from the events of whichever parser is there, and constructs scalars."""

    def __init__(self, text: str) -> None:
        Composer.__init__(self)
        SafeConstructor.__init__(self)
        _Resolver.__init__(self)
        parser = yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)
        self.check_event, self.get_event, self.peek_event = parser.check_event, parser.get_event, parser.peek_event
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            event: Any = self.peek_event()
            raise TextError(f"nested deeper than {MAX_DEPTH} levels", event.start_mark.line + 1)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class YamlText:
    """A parsed text: its values in ``data``. Raises TextError."""

    def __init__(self, text: str) -> None:
        try:
            self._reader = _Reader(text)
            self._root = self._reader.get_single_node()
            self._count = 0
            self.data = None if self._root is None else self._value(self._root, ())
        except TextError:
            raise
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            raise TextError(f"no YAML: {error.problem or error.context}", mark.line + 1 if mark else None) from error
        except Exception as error:
            # A parser of strangers' texts: whatever it stumbles over is a fault of this text, and of no other.
            raise TextError(f"no YAML: {' '.join(str(error).split())[:200] or type(error).__name__}") from error

    def line(self, place: Sequence[str | int]) -> int | None:
        """The line of a value by its path of keys and indices, or of the nearest around it."""
        node = self._root
        line = node.start_mark.line + 1 if node is not None else None
        for part in place:
            node, inner = _inside(node, part)
            if node is None:
                break
            line = inner
        return line

    def _value(self, node: yaml.Node, around: tuple[int, ...]) -> Any:
        line = node.start_mark.line + 1
        self._count += 1
        if self._count > MAX_VALUES:
            raise TextError(f"more than {MAX_VALUES} values; a job as large as that is written as JSON", line)
        if id(node) in around:
            raise TextError("a value contains itself", line)
        inside = (*around, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, inside) for item in node.value]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, inside)
        try:
            return self._reader.construct_object(node)
        except Exception as error:
            name = node.tag.rpartition(":")[2]
            raise TextError(f"{str(node.value)[:40]!r} is no {name}, as it is said to be", line) from error

    def _mapping(self, node: yaml.MappingNode, inside: tuple[int, ...]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise TextError("a key must be a word", line)
            if key.value in found:
                raise TextError(f"{key.value}: it is there twice, first in line {lines[key.value]}", line)
            found[key.value], lines[key.value] = self._value(value, inside), line
        return found


def _inside(node: yaml.Node | None, part: str | int) -> tuple[yaml.Node | None, int | None]:
    """The node at a key or index, and the line where it is named."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return value, key.start_mark.line + 1
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part].start_mark.line + 1
    return None, None
