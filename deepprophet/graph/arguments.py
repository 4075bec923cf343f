"""Which parts of a batch a model's ``forward`` takes, by its signature; the rest is for the loss. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from deepprophet.errors import InputError

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True, slots=True)
class Selection:
    """What a model is called with: the first ``count`` parts of a tuple, and the ``names`` of a mapping; None: all."""

    count: int | None = None
    names: frozenset[str] | None = None


EVERYTHING = Selection()


def selection(forward: Callable[..., Any], batch: Any, *, has_loss: bool) -> Selection:
    """Return what ``forward`` is called with, of a batch that is a tuple, a list, a mapping or one argument.

    Raises InputError for a batch without a loss that has more than ``forward`` takes.
    """
    try:
        parameters = inspect.signature(forward).parameters
    except (TypeError, ValueError):  # what is written in C does not say
        return EVERYTHING
    if isinstance(batch, Mapping):
        return Selection(names=_names(parameters, batch, has_loss=has_loss))
    if isinstance(batch, (tuple, list)):
        return Selection(count=_count(parameters, len(batch), has_loss=has_loss))
    return EVERYTHING


def _count(parameters: Mapping[str, inspect.Parameter], given: int, *, has_loss: bool) -> int | None:
    kinds = [parameter.kind for parameter in parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    positional = [parameter for parameter in parameters.values() if parameter.kind in _POSITIONAL]
    required = sum(parameter.default is inspect.Parameter.empty for parameter in positional)
    if not has_loss:
        if given > len(positional):
            names = _listed([parameter.name for parameter in positional])
            raise InputError(
                f"the batch has {given} parts, and the model's forward takes {names}: "
                "return a loss too, loss(output, batch), that uses the others"
            )
        return None
    # The last part is the labels, which most models do not take; one that needs it gets it.
    return max(min(given - 1, len(positional)), min(required, given))


def _names(
    parameters: Mapping[str, inspect.Parameter], batch: Mapping[Any, Any], *, has_loss: bool
) -> frozenset[str] | None:
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    taken = {name for name, parameter in parameters.items() if parameter.kind in _NAMED}
    unknown = sorted(str(name) for name in batch if name not in taken)
    if unknown and not has_loss:
        raise InputError(
            f"the batch has {_listed(unknown)}, which the model's forward does not take; it takes "
            f"{_listed(sorted(taken))}: rename it, or return a loss too, loss(output, batch), that uses it"
        )
    return frozenset(name for name in batch if name in taken)


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:12]
    more = ", ..." if len(names) > len(shown) else ""
    return f"{', '.join(shown)}{more}" if shown else "nothing"
