"""Hydra, the process manager of MPICH, and its kin in Intel MPI and MVAPICH."""

from __future__ import annotations

import itertools
import os.path
from collections.abc import Sequence
from typing import ClassVar

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.ranks import HYDRA, MVAPICH, MVAPICH2, Variables

_LABELS = frozenset({"-l", "-prepend-rank", "--prepend-rank"})
"""Options by which mpiexec puts ``[0] `` before the lines of its ranks (``mpiexec.hydra -help``)."""

_PROXIES = ("hydra_pmi_proxy", "hydra_bstrap_proxy")


class Hydra(Launcher):
    """A rank that one of Hydra's proxies has started.

    The proxies of one run have the address of the same mpiexec in their arguments: ``--control-port HOST:PORT``, in
    Intel MPI ``--upstream-host HOST --upstream-port PORT``. It is the run's name.
    """

    precedence = Precedence.MPI
    variables: ClassVar[tuple[Variables, ...]]
    own: ClassVar[frozenset[str]] = frozenset()
    """One of these variables must be there."""

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the run of a rank."""
        ranked = any(one.rank in facts.environment for one in self.variables)
        if not ranked or (self.own and self.own.isdisjoint(facts.environment)):
            return None
        return self.by_environment(facts, _mpiexec(facts.parent_command), *self.variables)


class Mpich(Hydra):
    """A rank of MPICH's: PMI_RANK, PMI_SIZE, MPI_LOCALRANKID (https://github.com/pmodels/mpich/tree/main/doc/wiki)."""

    name = "mpich"
    variables = (HYDRA,)
    reads = frozenset(HYDRA)


class IntelMpi(Hydra):
    """A rank of Intel MPI's, which sets MPICH's variables.

    I_MPI_MPIRUN and I_MPI_ROOT tell it from MPICH (Intel MPI Library Developer Reference, environment variables).
    """

    name = "intelmpi"
    variables = (HYDRA,)
    own = frozenset({"I_MPI_MPIRUN", "I_MPI_ROOT"})
    reads = frozenset(HYDRA) | own


class Mvapich(Hydra):
    """A rank of MVAPICH's: MV2_COMM_WORLD_RANK, from version 3 on MVP_COMM_WORLD_RANK (MVAPICH User Guide)."""

    name = "mvapich"
    variables = (MVAPICH2, MVAPICH)
    reads = frozenset(MVAPICH2) | frozenset(MVAPICH)


def writes_labels(command: Sequence[str], program: str) -> bool:
    """Returns whether an mpiexec's arguments let it label lines. What follows the ranks' ``program`` is of that."""
    names = [os.path.basename(argument) for argument in command]  # noqa: PTH119 - no file is meant
    own = os.path.basename(program)  # noqa: PTH119 - as above
    end = names.index(own, 1) if own and own in names[1:] else 2
    return not _LABELS.isdisjoint(command[1:end])


def _mpiexec(command: tuple[str, ...]) -> str | None:
    """Returns the address of the mpiexec that a proxy belongs to, as HOST-PORT; None: the command is no proxy's."""
    if not command or os.path.basename(command[0]) not in _PROXIES:  # noqa: PTH119 - no file is meant
        return None
    values = dict(itertools.pairwise(command))
    host, port = values.get("--upstream-host"), values.get("--upstream-port")
    return f"{host}-{port}" if host and port else values.get("--control-port")
