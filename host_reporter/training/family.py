"""The family of a job by the name that its launcher or its study has. Pure.

Runs of one family are runs of the same training, so a name that is another one at each launch says nothing.
"""

from __future__ import annotations

import re

MAX_NAME = 127
"""The longest name of a family, as the controller takes it (controller.wire, which cannot be loaded everywhere)."""

_PREFIXES = (
    "job",
    "run",
    "task",
    "batch",
    # Slurm's names of what was given none.
    "slurm",
    "sbatch",
    "srun",
    "salloc",
    "interactive",
    "wrap",
    "bash",
    "sh",
    # Kubernetes' operators, Ray, torchrun, MPI and other batch systems.
    "pytorchjob",
    "tfjob",
    "mpijob",
    "jaxjob",
    "xgboostjob",
    "paddlejob",
    "trainjob",
    "rayjob",
    "ray",
    "torchrun",
    "mpirun",
    "lsf",
    "pbs",
    "sge",
    "flux",
    "condor",
)
_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NUMBER = rf"(\d+([-_.]\d+)*|(?=[0-9a-f]*\d)[0-9a-f]{{8,}}|{_UUID})"
_LAUNCHERS_OWN = re.compile(
    rf"(({'|'.join(_PREFIXES)})([-_.]?{_NUMBER})?|\d+([-_.]\d+)*|{_UUID}|[0-9a-f]{{32,}}|raysubmit_\w+)", re.IGNORECASE
)


def family_of_name(name: str | None) -> str | None:
    """Returns the family of a job of this name.

    None: the name is a launcher's prefix, a number, or both, such as slurm-4711; or there is none.
    """
    text = "".join(filter(str.isprintable, name or "")).strip()[:MAX_NAME]
    if not any(map(str.isalnum, text)) or _LAUNCHERS_OWN.fullmatch(text):
        return None
    return text
