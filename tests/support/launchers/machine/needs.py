"""What a real launcher needs of this machine; what is missing is the reason for which a test is skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator

from tests.support.launchers.machine.cgroups import hierarchies

SLURM = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "sinfo", "scancel")
OPEN_MPI = ("mpirun.openmpi",)
MPICH = ("mpiexec.mpich", "mpirun.mpich")
CONTAINERS = ("podman", "runc", "conmon", "busybox")


def missing(programs: Iterable[str], *, root: bool = False, cgroups: bool = False) -> str | None:
    """Returns why these programs cannot be used here; None: they can."""
    return next(_problems(programs, root=root, cgroups=cgroups), None)


def _problems(programs: Iterable[str], *, root: bool, cgroups: bool) -> Iterator[str]:
    if absent := [program for program in programs if shutil.which(program, path=search_path()) is None]:
        yield f"not installed: {', '.join(absent)}; scripts/setup installs them"
    if root and os.geteuid() != 0:
        yield "it starts daemons that run processes of other users, which needs root"
    if cgroups and not any(os.access(hierarchy.root, os.W_OK) for hierarchy in hierarchies()):
        yield "no cgroup hierarchy can be written here"


def search_path() -> str:
    """Returns PATH with the folders of daemons, which a user's PATH lacks."""
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
