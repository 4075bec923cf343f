"""How a part of the controller takes other settings: first it prepares, and may refuse; then it changes at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from controller.config.config import Config
from controller.reload.difference import Change


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change of one part that is ready. ``apply`` makes it; it neither waits nor fails.

    ``changes`` are those in files that the settings name, such as new tokens.
    """

    apply: Callable[[], None]
    changes: tuple[Change, ...] = ()


Prepare = Callable[[Config], Prepared]
"""Prepares a part for other settings, and changes nothing. It may wait. Raises ConfigError, or Invalid, if the
part refuses them."""
