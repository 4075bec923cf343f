"""What a measured claim is to ``scripts/evaluate``: groups that are measured one by one, and what they add up to.

A claim is a module ``evaluation.NAME.claim`` with what ``Claim`` says; ``CLAIMS`` names those that there are. The
command knows nothing else of it: it measures the groups side by side, keeps each one's result, and writes the summary.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeVar, cast

from rich.table import Table

from topologies.box.datapath import Datapath, Wanted

CLAIMS = ("jpas", "tensorlights", "real", "beamer", "sasp", "deepprophet")
NO_DATAPATH = "none"
"""The datapath of what is measured without the emulated network."""


class Result(Protocol):
    """What measuring a group gives, JSON on disk as any dataclass: at least, on which datapath it was measured."""

    @property
    def datapath(self) -> str:
        """One of ``Datapath``, or NO_DATAPATH."""


R = TypeVar("R", bound=Result)
R_co = TypeVar("R_co", bound=Result, covariant=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a group is measured. ``folder`` is its own; once ``stop`` is set, ``run`` must end soon.

    ``wanted`` is as the command or the claim says, ``datapath`` what that means here (None: a claim without a testbed).
    """

    folder: Path
    wanted: Wanted
    datapath: Datapath | None
    stop: Event


class Group(Protocol[R_co]):
    """A piece of a claim that is measured as a whole, and need not be again: usually, paired arms of one seed."""

    @property
    def name(self) -> str:
        """What its folder is called; no two of a claim are called the same."""

    @property
    def seed(self) -> int:
        """What its randomness comes from."""

    @property
    def arms(self) -> int:
        """How many arms it has, for the bar."""

    def asked(self) -> Any:
        """What it measures, as a value that is JSON on disk: a result that answers something else is not kept."""

    def run(self, setting: Setting) -> R_co:
        """Measure, and leave the result in the setting's folder, for ``read``. Raises LabError and its like, OSError.

        It may be called in a thread beside the main one, with other groups in others.
        """

    def read(self, folder: Path) -> R_co:
        """The result that ``run`` left there. Raises OSError, ValueError."""


class Claim(Protocol[R]):
    """A module ``evaluation.NAME.claim``."""

    @property
    def DATAPATH(self) -> Wanted | None:  # noqa: N802 - a module's constant
        """Where its switches run unless the command says otherwise.

        None: it needs no emulated network, and its groups are measured one at a time.
        """

    def groups(self, *, quick: bool, others: bool) -> Sequence[Group[R]]:
        """All that is to be measured, the longest first; quick: one seed, baseline and subject, under 5 minutes.

        ``others`` of False: at every seed the baseline and the subject alone.
        """

    def add_up(self, results: Sequence[tuple[Any, R]]) -> Mapping[str, Any]:
        """The claim's own fields of ``summary.json``, from each group with its result."""

    def headline(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """What the docs may quote, made by ``summary.claim`` from the fields of ``add_up``."""

    def tables(self, fields: Mapping[str, Any]) -> Iterable[Table]:
        """What is shown at the end."""

    def plot(self, fields: Mapping[str, Any], folder: Path) -> None:
        """Draw the claim's picture into ``folder``."""


def load(name: str) -> Claim[Any]:
    """The claim of this name. Only its own module is loaded: another may need what is not installed."""
    return cast("Claim[Any]", importlib.import_module(f"evaluation.{name.replace('-', '_')}.claim"))
