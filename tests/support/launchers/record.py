"""``python -m tests.support.launchers.record [NAME ...]``: launch for real, and write what each process has.

Writes ``tests/data/launchers/NAME.json``, which unit tests read where no launcher is. As root, since Slurm's daemons
start processes of other users. Names of hosts, users, folders and addresses are made neutral.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.launchers.network import launchers_namespace
from tests.support.launchers.recording import Launch
from tests.support.launchers.scenarios import MPI, SLURM, Batch, Direct
from tests.support.launchers.slurm import SlurmCluster
from tests.support.launchers.users import nobody
from tests.support.paths import DATA

RECORDINGS = DATA / "launchers"
_PROGRAMS = {
    "slurm": ("slurmd", "-V"),
    "open-mpi": ("mpirun.openmpi", "--version"),
    "mpich": ("dpkg-query", "-W", "-f=MPICH ${Version}", "mpich"),
}


def main(arguments: Sequence[str]) -> int:
    """Record the launches of these names, or all. Returns 0: done; 2: there is no launch of a name."""
    every = {**SLURM, **MPI}
    if unknown := [name for name in arguments if name not in every]:
        sys.stderr.write(f"record-launchers: no launch {', '.join(unknown)}; there are: {', '.join(every)}\n")
        return 2
    chosen = {name: every[name] for name in arguments or every}
    with launchers_namespace():
        for name, document in _recorded(chosen):
            document["program"] = _version(name)
            (RECORDINGS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
            sys.stdout.write(f"{name}: {len(document['processes'])} processes\n")
    return 0


def _recorded(chosen: Mapping[str, Batch | Direct]) -> Iterator[tuple[str, dict[str, Any]]]:
    by_slurm = {name: scenario for name, scenario in chosen.items() if name in SLURM}
    with contextlib.ExitStack() as stack:
        cluster = stack.enter_context(SlurmCluster()) if by_slurm else None
        for name, scenario in by_slurm.items():
            assert cluster is not None
            launch = Launch(cluster.folder, nobody(), {str(cluster.folder): "/var/lib/slurm"})
            if isinstance(scenario, Batch):
                yield name, launch.record_batch(cluster, name, scenario)
            else:
                yield name, launch.record_direct(name, scenario, cluster)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        for name, scenario in chosen.items():
            if name not in by_slurm and isinstance(scenario, Direct):
                yield name, Launch(Path(folder), nobody(), {}).record_direct(name, scenario)


def _version(name: str) -> str:
    """Returns what was recorded, with its version."""
    kind = next((kind for kind in reversed(_PROGRAMS) if kind in name), "slurm")
    commands = [_PROGRAMS["slurm"]] * name.startswith("slurm") + [_PROGRAMS[kind]] * (kind != "slurm")
    said = (subprocess.run(command, capture_output=True, text=True, check=True).stdout for command in commands)
    return ", ".join(text.splitlines()[0].removeprefix("mpirun ").strip("()") for text in said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
