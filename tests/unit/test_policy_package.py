"""A policy that comes in a package of its own: built, installed beside this environment, found and used by name."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "setup.cfg": """\
[metadata]
name = trainyard-lifo
version = 1.0

[options]
py_modules = trainyard_lifo

[options.entry_points]
trainyard.policies =
    lifo = trainyard_lifo:Lifo
""",
    "pyproject.toml": '[build-system]\nrequires = ["setuptools>=64"]\nbuild-backend = "setuptools.build_meta"\n',
    "trainyard_lifo.py": '''\
"""LIFO: who came last goes first."""

from controller.model import Ordering, Snapshot
from controller.policies._base import Policy


class Lifo(Policy):
    """One job a band, the latest arrival first."""

    name = "lifo"

    def order(self, snapshot: Snapshot, previous: Ordering | None) -> Ordering:
        """Order by arrival, backwards."""
        jobs = sorted(snapshot.jobs, key=lambda job: -job.arrival)
        return Ordering(
            policy=self.name,
            bands=tuple((job.id,) for job in jobs),
            reasons={job.id: f"arrived at {job.arrival:g} s" for job in jobs},
        )
''',
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package as an installer leaves it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name, text in FILES.items():
        (source / name).write_text(text)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(target), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def order(installed: Path | None, policy: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    document = {
        "hosts": [{"name": "h1"}, {"name": "h2"}],
        "jobs": [{"id": job, "arrival": at, "demand": []} for job, at in (("a", 1.0), ("b", 3.0), ("c", 2.0))],
    }
    (tmp_path / "snapshot.json").write_text(json.dumps(document))
    environment = os.environ | ({"PYTHONPATH": str(installed)} if installed is not None else {})
    command = [sys.executable, "-m", "controller.cli", "order", "--policy", policy, str(tmp_path / "snapshot.json")]
    return subprocess.run([*command, "--json"], env=environment, capture_output=True, text=True, check=False)


def test_a_policy_of_another_package_is_found_by_its_entry_point(installed: Path, tmp_path: Path) -> None:
    done = order(installed, "lifo", tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["order"] == [["b"], ["c"], ["a"]]
    assert answer["reasons"]["b"] == "arrived at 3 s"


def test_without_the_package_it_is_unknown_and_with_it_ours_are_still_there(installed: Path, tmp_path: Path) -> None:
    done = order(None, "lifo", tmp_path)
    assert done.returncode == 2
    assert "unknown policy 'lifo'; there are: beamer," in done.stderr
    assert order(installed, "fifo", tmp_path).returncode == 0
