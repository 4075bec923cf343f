"""Debian's two MPIs, called by their own names: ``mpirun`` is whichever of the two the system prefers."""

from __future__ import annotations


def open_mpi(ranks: int | None, *program: str, label: bool = True) -> list[str]:
    """The command that starts so many ranks with Open MPI; None: as many as the batch system says."""
    count = [] if ranks is None else ["-n", str(ranks)]
    # Root, since CI is; more ranks than processors, since they only wait.
    options = ["--allow-run-as-root", "--oversubscribe", *(["--tag-output"] if label else [])]
    return ["mpirun.openmpi", *options, *count, *program]


def mpich(ranks: int | None, *program: str, label: bool = True, name: str = "mpiexec.mpich") -> list[str]:
    """The same with MPICH. ``name``: ``mpirun.mpich`` is the same program."""
    count = [] if ranks is None else ["-n", str(ranks)]
    return [name, *(["-prepend-rank"] if label else []), *count, *program]
