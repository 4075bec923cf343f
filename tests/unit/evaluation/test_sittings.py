"""``scripts/evaluate`` in sittings: some groups at a time, and results in their small form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from evaluation import resume
from evaluation.jpas import claim as jpas
from evaluation.jpas.arms import Group
from tests.support.evaluate import read, run
from tests.support.fake_kernel import FakeKernel
from topologies.experiments.workload import LIGHT
from topologies.lab.results import LabRequest


def test_a_sitting_measures_some_groups_and_adds_nothing_up(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    assert run(tmp_path / "out", "--only", "old-heavy-7") == 0
    assert sorted(kernel.runs()) == [f"old-heavy-{seed}" for seed in range(70, 74)]
    assert not (tmp_path / "out" / "summary.json").exists()
    assert f"4 of {len(jpas.groups())} groups are measured" in " ".join(capsys.readouterr().err.split())
    kernel.forget()
    assert run(tmp_path / "out", "--only", "old", "--resume") == 0
    assert sorted(kernel.runs()) == [f"old-heavy-{seed}" for seed in range(66, 70)]
    assert run(tmp_path / "out", "--only", "new") == 1
    assert "no group's name begins with 'new'" in " ".join(capsys.readouterr().err.split())


def test_a_part_is_measured_or_what_is_measured_is_added_up(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(tmp_path / "out", "--measured", "--only", "old-heavy-7")
    assert "argument --only: not allowed with argument --measured" in capsys.readouterr().err
    assert kernel.runs() == []


@pytest.mark.usefixtures("two_groups")
def test_small_forms_stand_in_for_results_that_are_gone(kernel: FakeKernel, tmp_path: Path) -> None:
    forms = tmp_path / "forms"
    assert run(tmp_path / "out", "--small-form", str(forms)) == 0
    before = read(tmp_path / "out")
    assert sorted(path.name for path in forms.iterdir()) == ["families-light-1.json", "families-light-2.json"]
    assert not any("history" in job and job["history"] for job in _jobs(forms / "families-light-1.json"))
    kernel.forget()
    assert run(tmp_path / "elsewhere", "--resume", "--small-form", str(forms)) == 0
    assert kernel.runs() == []
    after = read(tmp_path / "elsewhere")
    assert after["workloads"] == before["workloads"]
    assert after["commits"] == before["commits"]
    # A form that answers another request does not count.
    (forms / "families-light-1.json").write_bytes((forms / "families-light-2.json").read_bytes())
    assert run(tmp_path / "third", "--resume", "--small-form", str(forms)) == 0
    assert kernel.runs() == ["families-light-1"]


@pytest.mark.usefixtures("two_groups")
def test_results_that_were_measured_without_small_forms_get_theirs(kernel: FakeKernel, tmp_path: Path) -> None:
    forms = tmp_path / "forms"
    assert run(tmp_path / "out", "--only", "families-light-1") == 0
    assert run(tmp_path / "out", "--measured", "--small-form", str(forms)) == 0
    assert [path.name for path in forms.iterdir()] == ["families-light-1.json"]
    kernel.forget()
    assert run(tmp_path / "elsewhere", "--only", "families-light-1", "--resume", "--small-form", str(forms)) == 0
    assert kernel.runs() == []


def _jobs(path: Path) -> list[dict]:
    return [job for arm in json.loads(path.read_text())["result"]["arms"] for job in arm["jobs"].values()]


def test_a_digest_is_of_what_is_asked_and_not_of_empty_fields() -> None:
    group = Group("families", LIGHT, 1, ("target",), 0)
    asked = group.request()
    assert resume.digest(asked) == resume.digest(Group("families", LIGHT, 1, ("target",), 0).request())
    assert resume.digest(asked) != resume.digest(Group("families", LIGHT, 2, ("target",), 0).request())
    bare = TypeAdapter(LabRequest).dump_python(asked, mode="json")
    for experiment in bare["experiments"]:
        experiment.pop("studies")
    assert resume.digest(bare) == resume.digest(asked)


def test_what_is_measured_is_added_up_and_the_rest_is_named(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "out"
    assert run(folder, "--measured") == 1
    assert "no group is measured yet" in " ".join(capsys.readouterr().err.split())
    assert run(folder, "--only", "old-heavy-7") == 0
    kernel.forget()
    assert run(folder, "--measured") == 0
    assert kernel.runs() == []
    document = read(folder)
    measured = {f"old-heavy-{seed}" for seed in range(70, 74)}
    assert document["seeds"] == list(range(70, 74))
    assert set(document["missing"]) == {group.name for group in jpas.groups()} - measured
    assert "not measured: " in " ".join(capsys.readouterr().err.split())


@pytest.mark.usefixtures("two_groups")
def test_a_part_never_overwrites_the_summary_of_all(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "out"
    assert run(folder) == 0
    whole = (folder / "summary.json").read_bytes()
    assert read(folder)["missing"] == []
    (folder / "arms" / "families-light-1" / resume.ORIGIN).unlink()
    assert run(folder, "--measured") == 0
    assert (folder / "summary.json").read_bytes() == whole
    assert read(folder / "part")["missing"] == ["families-light-1"]
    assert f"{folder}/summary.jsonbelongstoafullrunandstays" in "".join(capsys.readouterr().err.split())
