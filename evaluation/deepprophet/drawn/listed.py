"""The draws as they were made: which models there are, and which types did not train, with the reason."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from evaluation.deepprophet.drawn.rule import REFUSED

FILES = {"studied": "studied.json", "unseen": "held_out.json"}
"""By the name of a draw, which begins the names of its models, its file."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """A drawn model: one of the library by ``config`` and ``class_name``, or a network by ``seed`` and ``number``."""

    name: str
    kind: str
    type: str
    batch_size: int
    length: int | None = None
    class_name: str = ""
    config: Mapping[str, Any] | None = None
    seed: int | None = None
    number: int = 0

    def arguments(self, folder: Path) -> list[str]:
        """Returns what the command is given for it; a configuration is written to ``folder``. Raises OSError."""
        if self.seed is not None:
            return [f"evaluation.deepprophet.drawn.networks:seed_{self.seed}_{self.number}"]
        path = folder / "config.json"
        path.write_text(json.dumps(self.config))
        length = [] if self.length is None else ["--length", str(self.length)]
        return [f"transformers:{path}:{self.class_name}", *length]


@dataclass(frozen=True, slots=True)
class Draw:
    """All of a draw. ``skipped``: by type of model why it was not taken."""

    seed: int
    transformers: str
    models: tuple[Drawn, ...]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def refused(self) -> tuple[str, ...]:
        """Returns the types that train, and that DeepProphet cannot predict: they are in no figure."""
        return tuple(name for name, reason in self.skipped.items() if reason.startswith(REFUSED))


def path_of(name: str) -> Path:
    """Returns the file of a draw."""
    return Path(__file__).parent / FILES[name]


@cache
def draws() -> dict[str, Draw]:
    """Returns the draws that were made, by name. Raises OSError, ValueError."""
    made = {name: path_of(name) for name in FILES if path_of(name).exists()}
    return {name: TypeAdapter(Draw).validate_json(path.read_bytes()) for name, path in made.items()}


def models() -> dict[str, Drawn]:
    """Returns all models that were drawn, by name."""
    return {drawn.name: drawn for draw in draws().values() for drawn in draw.models}


def why_not(name: str, there: Collection[str]) -> str | None:
    """Returns why a draw cannot be made beside those that are ``there``; None where it can."""
    if name not in FILES:
        return f"there is no draw {name}: give {' or '.join(FILES)}"
    if "unseen" in there:
        return (
            f"{FILES['unseen']} is there: models are held out once, and a draw after that is of models that were seen"
        )
    if name == "unseen" and "studied" not in there:
        return "draw studied first, and commit it: its types are not held out"
    return None


def write(name: str, draw: Draw) -> None:
    """Writes a draw. Raises OSError."""
    document = TypeAdapter(Draw).dump_python(draw, mode="json")
    path_of(name).write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
