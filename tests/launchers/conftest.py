"""Real launchers for the tests: a Slurm for all of them, in a network namespace where nobody else reaches it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.launchers import torchrun
from tests.support.launchers.containers.podman import Containers
from tests.support.launchers.machine import needs
from tests.support.launchers.machine.network import launchers_namespace
from tests.support.launchers.slurm.cluster import SlurmCluster


def _need(problem: str | None) -> None:
    if problem is not None:
        pytest.skip(problem)


@pytest.fixture(scope="session")
def network() -> Iterator[None]:
    """Launchers' daemons listen on all addresses; here these are of this test alone."""
    _need(needs.missing(("ip",), root=True))
    with launchers_namespace():
        yield


@pytest.fixture(scope="session")
def slurm(network: None) -> Iterator[SlurmCluster]:
    """Slurm with two nodes on this machine."""
    _need(needs.missing(needs.SLURM, root=True, cgroups=True))
    with SlurmCluster() as cluster:
        yield cluster


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that users of jobs can enter; pytest's own is root's alone."""
    with tempfile.TemporaryDirectory(prefix="launch-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.fixture
def mpi(network: None) -> None:
    """Both of Debian's MPIs."""
    _need(needs.missing((*needs.OPEN_MPI, *needs.MPICH)))


@pytest.fixture
def torch(network: None) -> None:
    """torchrun of the frameworks' environment."""
    _need(torchrun.problem())


@pytest.fixture
def containers(network: None, place: Path) -> Iterator[Containers]:
    """podman, from a folder."""
    _need(needs.missing(needs.CONTAINERS, root=True, cgroups=True))
    with Containers(place / "containers") as started:
        yield started
