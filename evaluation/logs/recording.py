"""What is recorded: one run of one program with one way of logging."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Streams = Literal["apart", "joined", "terminal"]
"""Where the output goes: two files, one file for both as Slurm has it, or a terminal."""

TRAININGS = "evaluation.logs.trainings"


@dataclass(frozen=True)
class Recording:
    """One run. ``name`` is its folder, ``program`` its environment, ``package`` whose version counts.

    ``version`` is a command whose output has the version, for a program that is no package of Python.

    ``command`` is run in an empty folder. ``keep`` are patterns of the files that are kept beside the output, and
    ``environment`` are variables that the run needs beside the usual ones. ``rename`` shortens folders that a
    program names by itself: a regular expression and what stands in its place.
    """

    name: str
    program: str
    package: str
    command: tuple[str, ...]
    streams: Streams = "apart"
    keep: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    rename: tuple[tuple[str, str], ...] = ()
    version: tuple[str, ...] = ()


def training(module: str, *arguments: str) -> tuple[str, ...]:
    """Returns the command of one of our trainings."""
    return ("python", "-m", f"{TRAININGS}.{module}", *arguments)


def torchrun(*options: str, module: str, arguments: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Returns the command of one of our trainings with two processes on this machine."""
    return ("torchrun", "--nproc-per-node", "2", *options, "-m", f"{TRAININGS}.{module}", *arguments)
