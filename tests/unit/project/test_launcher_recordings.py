"""The recordings of real launches are whole, small, and say nothing of the machine that they were made on."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.support.launchers.containers.pod_scenarios import PODS
from tests.support.launchers.recording.scenarios import MPI, SLURM, TORCH
from tests.support.paths import DATA

RECORDINGS = {path.stem: path for path in (DATA / "launchers").glob("*.json")}
PROCESS = {"pid", "parent", "uid", "command", "cgroup", "environment", "descriptors"}
FOLDERS = {
    "/home/alice",
    "/var/lib/slurm",
    "/var/lib/containers",
    "/var/log/pods",
    "/usr",
    "/bin",
    "/opt/venv",
    "/tmp",
    "/dev",
}


def document(name: str) -> dict[str, Any]:
    return dict(json.loads(RECORDINGS[name].read_text()))


def test_each_launch_has_its_recording() -> None:
    assert set(RECORDINGS) == {*SLURM, *MPI, *TORCH, "podman", *PODS}


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_recording_is_whole_and_small(name: str) -> None:
    told = document(name)
    assert {"name", "about", "program", "command", "output", "processes"} <= set(told)
    assert told["name"] == name
    assert RECORDINGS[name].stat().st_size < 64 * 1024
    for process in told["processes"]:
        assert set(process) >= PROCESS
        assert process["parent"] == 1 or process["parent"] in {other["pid"] for other in told["processes"]}


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_a_recording_names_no_folder_user_or_address_of_the_machine(name: str) -> None:
    text = RECORDINGS[name].read_text()
    places = {found for process in document(name)["processes"] for found in process["descriptors"].values()}
    assert all(any(place.startswith(folder) for folder in FOLDERS) for place in places if place.startswith("/")), places
    assert not re.search(r"\bgames\b", text)
    addresses = set(re.findall(r"\b\d{1,3}(?:\.\d{1,3}){3}\b", text))
    assert addresses <= {"127.0.0.1", "192.0.2.1", "10.96.0.1", "0.0.0.0"}


@pytest.mark.parametrize("name", sorted(RECORDINGS))
def test_labels_name_each_rank_once(name: str) -> None:
    ranks = [process["rank"] for process in document(name)["processes"] if process.get("rank") is not None]
    assert sorted(ranks) == list(range(len(ranks)))
