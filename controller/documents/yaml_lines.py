"""The reader of YAML: the values of a text, and the line of each. A text that is no valid YAML is refused in one line.

The library's C parser is fast, but its composer recurses until the process dies. So this reader composes the parser's
events itself, up to a bounded depth and size. It returns only plain values, which anchors may repeat.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml
from yaml.composer import Composer
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from controller.documents.document import Document, DocumentError, FieldPath

MAX_DEPTH = 50
MAX_VALUES = 300_000
"""Accept at most this many values in a text; the values of an anchor count wherever they are repeated."""

_SHOWN_CHARACTERS = 200
_NOT_YAML = "this is no valid YAML"


def read_yaml(text: str, *, most_values: int = MAX_VALUES) -> Document:
    """Returns the values of a YAML text with their lines; a text without any value gives None.

    The line of a mapping's value is the line of its key. Raises DocumentError for what is no valid YAML, for a key
    that is given twice or is no scalar, for a value that contains itself, and for more than ``most_values`` values.
    """
    try:
        composer = _Composer(text)
        root = composer.get_single_node()
        data = None if root is None else _Values(composer, most_values).value(root, (), ())
    except DocumentError:
        raise
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        raise DocumentError(f"{error.problem or error.context}; {_NOT_YAML}", line) from None
    except yaml.reader.ReaderError as error:
        raise _forbidden_character(text, error) from None
    except Exception as error:
        # The text may be a stranger's: whatever the library stumbles over is a fault of this text.
        reason = " ".join(str(error).split())[:_SHOWN_CHARACTERS] or type(error).__name__
        raise DocumentError(f"{reason}; {_NOT_YAML}", None) from None
    return Document(data, lambda paths: [_line(root, path) for path in paths])


class _Resolver(Resolver):
    """Resolves YAML's plain values, and numbers such as 1e9, which YAML 1.1 reads as text."""


_Resolver.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


class _Composer(Composer, SafeConstructor, _Resolver):
    """Composes nodes from the events of the C parser, or of Python's where there is no C parser."""

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
            raise DocumentError(f"nested deeper than {MAX_DEPTH} levels; {_NOT_YAML}", event.start_mark.line + 1)
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1


class _Values:
    """Turns nodes into values, and counts them."""

    def __init__(self, composer: _Composer, most: int) -> None:
        self._composer = composer
        self._most = most
        self._count = 0

    def value(self, node: yaml.Node, path: FieldPath, around: tuple[int, ...]) -> Any:
        """Returns the value of a node; ``around`` holds the identities of the nodes that contain it."""
        self._count += 1
        if self._count > self._most:
            raise DocumentError(f"more than {self._most} values, which is the most that is read", _line_of(node))
        if id(node) in around:
            raise DocumentError("contains itself", _line_of(node), path)
        inside = (*around, id(node))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i), inside) for i, item in enumerate(node.value)]
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, inside)
        try:
            return self._composer.construct_object(node)
        except Exception:
            # The library fails in many ways at a tag that the value contradicts.
            problem = f"{str(node.value)[:40]!r} is no {node.tag.rpartition(':')[2]}; {_NOT_YAML}"
            raise DocumentError(problem, _line_of(node), path) from None

    def _mapping(self, node: yaml.MappingNode, path: FieldPath, inside: tuple[int, ...]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        lines: dict[str, int] = {}
        for key, value in node.value:
            line = _line_of(key)
            if not isinstance(key, yaml.ScalarNode):
                raise DocumentError("a key must be a word", line, path)
            inner = (*path, key.value)
            if key.value in result:
                raise DocumentError(f"given twice, first in line {lines[key.value]}; keep one", line, inner)
            result[key.value], lines[key.value] = self.value(value, inner, inside), line
        return result


def _line_of(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _line(root: yaml.Node | None, path: Sequence[str | int]) -> int:
    """Returns the line of a value, or of the nearest value around it."""
    if root is None:
        return 1
    node, line = root, _line_of(root)
    for part in path:
        if (entry := _entry(node, part)) is None:
            break
        node, line = entry
    return line


def _entry(node: yaml.Node, part: str | int) -> tuple[yaml.Node, int] | None:
    """Returns the node at a key or an index and the line where it begins, or None if there is none."""
    if isinstance(node, yaml.MappingNode):
        return next(((value, _line_of(key)) for key, value in node.value if key.value == part), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], _line_of(node.value[part])
    return None


def _forbidden_character(text: str, error: yaml.reader.ReaderError) -> DocumentError:
    # The C parser counts the bytes of the UTF-8 text, Python's counts characters.
    if yaml.__with_libyaml__:
        line = text.encode(errors="replace")[: error.position].count(b"\n") + 1
    else:
        line = text[: error.position].count("\n") + 1
    character = error.character if isinstance(error.character, int) else ord(error.character)
    return DocumentError(f"character {character:#x} may not be in it; {_NOT_YAML}", line)
