"""``MODULE:FACTORY``: a function of the user's that returns a model and an example batch. It is anybody's code."""

from __future__ import annotations

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from deepprophet.errors import InputError, exited
from deepprophet.graph.subject import Subject, subject


def load(path: str, batch_size: int | None = None) -> Subject:
    """What ``MODULE:FACTORY`` gives. Raises InputError.

    A factory that takes ``batch_size`` is asked for that many examples; otherwise the example batch is cut or grown.
    """
    module_name, colon, name = path.partition(":")
    if not colon or not module_name or not name:
        raise InputError(f"{path}: it must be MODULE:FACTORY, such as my_models:resnet")
    try:
        factory = _find(module_name, name)
        sized = batch_size is not None and _takes_batch_size(factory)
        answer = factory(batch_size=batch_size) if sized else factory()
    except (InputError, KeyboardInterrupt):
        raise
    except BaseException as error:  # it is anybody's code
        raise InputError(f"{path} failed: {told(error)}") from error
    return subject(answer, path)


def _find(module_name: str, name: str) -> Callable[..., Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as "python -m" does: factories stand beside the training script
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(
                f"no module {module_name}: it is looked for in this folder and where Python finds modules"
            ) from error
        raise InputError(f"{module_name} cannot be imported: {error}") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise InputError(f"{module_name} cannot be imported: {told(error)}") from error
    target: Any = module
    for part in name.split("."):
        if not hasattr(target, part):
            near = [key for key in vars(module) if callable(getattr(module, key)) and not key.startswith("_")]
            raise InputError(
                f"{module_name} has no {name}; it has {', '.join(sorted(near)[:12]) or 'nothing callable'}"
            )
        target = getattr(target, part)
    if not callable(target):
        raise InputError(
            f"{module_name}:{name} must be a function that returns (model, batch); it is a {type(target).__name__}"
        )
    factory: Callable[..., Any] = target
    return factory


def _takes_batch_size(factory: Callable[..., Any]) -> bool:
    try:
        return "batch_size" in inspect.signature(factory).parameters
    except (TypeError, ValueError):  # what is written in C does not say
        return False


def told(error: BaseException) -> str:
    """Return an error of anybody's code as one line, with where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    at = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    if isinstance(error, SystemExit):
        return f"{exited(error)}{at}"
    return f"{type(error).__name__}: {said(error)}{at}"


def said(error: BaseException) -> str:
    """Return what an error says, as one line."""
    lines = [line.strip() for line in str(error).strip().splitlines()] or ["it says nothing more"]
    # Where the first line only says of what kind it is, the next one says what.
    return " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
