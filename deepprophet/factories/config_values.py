"""Values of a configuration of transformers by the library's common names, and configurations in it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def values(config: Any) -> dict[str, Any]:
    """Return the values of a configuration; those that have a common name (``attribute_map``) are called by it."""
    own = dict(vars(config))
    for common, name in type(config).attribute_map.items():
        if name in own:
            own[common] = own.pop(name)
    return own


def renamed(kind: Any, changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names that a configuration of a kind has for them."""
    return {kind.attribute_map.get(name, name): value for name, value in changed.items()}


def parts(config: Any) -> Iterator[tuple[str, Any]]:
    """Yield the configurations of a model's parts, such as of its text and its pictures."""
    for name in getattr(config, "sub_configs", ()):
        if (part := getattr(config, name, None)) is not None and not isinstance(part, dict):
            yield name, part
