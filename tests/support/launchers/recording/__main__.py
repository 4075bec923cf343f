"""``python -m tests.support.launchers.recording [NAME ...]``: launch for real, and write what each process has.

Writes ``tests/data/launchers/NAME.json``, which unit tests read where no launcher is. As root, since Slurm's daemons
start processes of other users. Names of hosts, users, folders and addresses are made neutral.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.launchers.containers.pod_scenarios import PODS
from tests.support.launchers.containers.podman import Containers
from tests.support.launchers.machine.network import launchers_namespace
from tests.support.launchers.machine.users import somebody
from tests.support.launchers.recording.containers import record_container, record_pod
from tests.support.launchers.recording.launch import Launch
from tests.support.launchers.recording.scenarios import MPI, SLURM, TORCH, Batch, Direct
from tests.support.launchers.slurm.cluster import SlurmCluster
from tests.support.launchers.torchrun import PYTHON
from tests.support.paths import DATA

RECORDINGS = DATA / "launchers"
_PROGRAMS = {
    "slurm": ("slurmd", "-V"),
    "open-mpi": ("dpkg-query", "-W", "-f=Open MPI ${Version}", "openmpi-bin"),
    "torchrun": (str(PYTHON), "-c", "import torch; print('PyTorch', torch.__version__.partition('+')[0])"),
    "podman": ("podman", "--version"),
    "mpich": ("dpkg-query", "-W", "-f=MPICH ${Version}", "mpich"),
}


def main(arguments: Sequence[str]) -> int:
    """Record the launches of these names, or all. Returns 0: done; 2: there is no launch of a name."""
    every = {**SLURM, **MPI, **TORCH, "podman": None, **PODS}
    if unknown := [name for name in arguments if name not in every]:
        sys.stderr.write(f"record-launchers: no launch {', '.join(unknown)}; there are: {', '.join(every)}\n")
        return 2
    with launchers_namespace():
        for name, recorded in _recorded(arguments or tuple(every)):
            document = {"name": name, "program": _version(name), **recorded}
            (RECORDINGS / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
            sys.stdout.write(f"{name}: {len(document['processes'])} processes\n")
    return 0


def _recorded(names: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    with tempfile.TemporaryDirectory(dir="/tmp") as made:
        folder = Path(made)
        folder.chmod(0o755)
        yield from _by_slurm({name: SLURM[name] for name in names if name in SLURM})
        for name, scenario in {**MPI, **TORCH}.items():
            if name in names and isinstance(scenario, Direct):
                yield name, Launch(folder, somebody(), {}).record_direct(scenario)
        yield from _in_containers(names, folder)


def _by_slurm(scenarios: Mapping[str, Batch | Direct]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not scenarios:
        return
    with SlurmCluster(first_job=1) as cluster:
        for name, scenario in scenarios.items():
            launch = Launch(cluster.folder, somebody(), {str(cluster.folder): "/var/lib/slurm"})
            if isinstance(scenario, Batch):
                yield name, launch.record_batch(cluster, scenario)
            else:
                yield name, launch.record_direct(scenario, cluster)


def _in_containers(names: Sequence[str], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    with Containers(folder / "containers") as containers:
        if "podman" in names:
            yield "podman", record_container(containers, folder)
        for name, scenario in PODS.items():
            if name in names:
                yield name, record_pod(containers, folder, scenario)


def _version(name: str) -> str:
    """Returns what was recorded, with its version."""
    kinds = [kind for kind in _PROGRAMS if kind in name] or ["podman"]
    said = (subprocess.run(_PROGRAMS[kind], capture_output=True, text=True, check=True).stdout for kind in kinds)
    return ", ".join(text.splitlines()[0] for text in said)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
