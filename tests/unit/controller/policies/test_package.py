"""A policy that comes in a package of its own: built, installed beside this environment, found and used by name."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.paths import ROOT


def documented() -> dict[str, str]:
    """The package as the docs show it: each block of code under "Your own" begins with its file's name."""
    text = (ROOT / "docs" / "policies.md").read_text().partition("\n## Your own\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```\w+\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return dict(blocks)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds the package as an installer leaves it."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    files = documented()
    assert set(files) == {"trainyard_lifo.py", "setup.cfg", "pyproject.toml"}
    for name, text in files.items():
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
    command = [
        sys.executable,
        "-m",
        "controller.cli.main",
        "order",
        "--policy",
        policy,
        str(tmp_path / "snapshot.json"),
    ]
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


def test_it_simulates_and_controls(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed))
    trace = tmp_path / "trace.txt"
    trace.write_text("2 2\n1 0 1 0 1 1:100\n2 100 1 0 1 1:100\n")
    command = [sys.executable, "-m", "controller.cli.main", "sim", "--trace", str(trace), "--json", "--policy", "lifo"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    ccts = json.loads(done.stdout)["per_coflow"]["lifo"]
    assert ccts["2"] < ccts["1"], "the later one goes first"
    controller = Controller(tmp_path, policy="lifo").start()
    try:
        for port, job in enumerate(("first", "second"), start=5000):
            spec = {
                "tasks": [{"role": "ps", "host": "h1", "port": port}, {"role": "worker", "host": "h2"}],
                "demand": [{"src": "h2", "dst": "h1", "bytes": 1e6}],
            }
            assert controller.call("PUT", f"/v1/jobs/{job}", spec).status_code == 201
        wait_until(
            lambda: controller.call("GET", "/v1/plan").json().get("order") == [["second"], ["first"]],
            what="a plan with the later job first",
        )
    finally:
        controller.stop()
