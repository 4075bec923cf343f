"""The interface of a measured claim for ``scripts/evaluate``: groups that are measured, and their combined result.

A claim is a module ``evaluation.NAME.claim`` with what ``Claim`` says; ``CLAIMS`` names them all. The
command knows no more of a claim: it measures the groups side by side, keeps each result, and writes the summary.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from rich.table import Table

from topologies.box.datapath import Datapath, Wanted

CLAIMS = ("jpas", "tensorlights", "real", "beamer", "sasp", "deepprophet")
NO_DATAPATH = "none"
"""Results that are measured without the emulated network have this datapath."""


class Result(Protocol):
    """The result of a group: a dataclass that is JSON on disk and has at least the datapath."""

    @property
    def datapath(self) -> str:
        """One of ``Datapath``, or NO_DATAPATH."""


R = TypeVar("R", bound=Result)
R_co = TypeVar("R_co", bound=Result, covariant=True)


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a group is measured. It has ``folder`` for itself. Once ``stop`` is set, ``run`` must end soon.

    The command or the claim says ``wanted``. ``datapath`` is what that means on this machine, None without a testbed.
    """

    folder: Path
    wanted: Wanted
    datapath: Datapath | None
    stop: Event


class Group(Protocol[R_co]):
    """A part of a claim that is measured as a whole and then kept, usually the paired arms of one seed."""

    @property
    def name(self) -> str:
        """The name of its folder. It is unique in a claim."""

    @property
    def seed(self) -> int:
        """The seed of all its random numbers."""

    @property
    def arms(self) -> int:
        """The number of its arms, for the progress bar."""

    def asked(self) -> Any:
        """Return what it measures, as a value that is JSON on disk. A result for another value is not reused."""

    def run(self, setting: Setting) -> R_co:
        """Measure, and leave the result in the setting's folder for ``read``. Raises EXPECTED_ERRORS, OSError.

        Several groups may run at once, in threads beside the main one.
        """

    def read(self, folder: Path) -> R_co:
        """Read the result that ``run`` left. Raises OSError, ValueError."""


@runtime_checkable
class HasSmallForm(Protocol[R]):
    """What a group has beside ``Group`` whose result has a small form (see ``evaluation.resume``)."""

    @property
    def answer(self) -> type[R]:
        """The type of its results."""

    def small(self, result: R) -> R:
        """Return a result without what is not added up."""


class Claim(Protocol[R]):
    """A module ``evaluation.NAME.claim``."""

    @property
    def DATAPATH(self) -> Wanted | None:  # noqa: N802 - a module's constant
        """The datapath of its switches unless the command says otherwise.

        None: the claim needs no emulated network, and its groups are measured one at a time.
        """

    def groups(self, *, quick: bool, others: bool) -> Sequence[Group[R]]:
        """Return all groups, the longest first.

        With ``quick`` that is one seed with baseline and subject, which takes under 5 minutes. With ``others`` False
        every seed has the baseline and the subject only.
        """

    def add_up(self, results: Sequence[tuple[Any, R]]) -> Mapping[str, Any]:
        """Return the claim's own fields of ``summary.json`` from each group with its result."""

    def headline(self, fields: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
        """Return the claims that the docs may quote: ``summary.claim`` entries from the fields of ``add_up``."""

    def tables(self, fields: Mapping[str, Any]) -> Iterable[Table]:
        """Return the tables that are shown at the end."""

    def plot(self, fields: Mapping[str, Any], folder: Path) -> None:
        """Draw the claim's picture into ``folder``."""


def load(name: str) -> Claim[Any]:
    """Return the claim of this name. Only its own module is loaded, because another may need what is not installed."""
    return cast("Claim[Any]", importlib.import_module(f"evaluation.{name.replace('-', '_')}.claim"))
