"""``scripts/evaluate`` from its command line to its files; the labs end at the box's process boundary."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import TypeAdapter
from rich.console import Console
from rich.table import Table

from evaluation import evaluate, resume, summary
from evaluation.bench.support.waiting import wait_until
from evaluation.claim import CLAIMS, NO_DATAPATH, Setting, load
from evaluation.jpas import claim as jpas
from evaluation.jpas.arms import AT_HEAVY, BASIC, FAMILY_SEEDS, Group
from evaluation.sasp import rates
from tests.support import sasp_rates
from tests.support.evaluate import read, run
from tests.support.fake_kernel import FakeKernel, lives
from tests.support.paths import ROOT
from topologies import checkout
from topologies.lab.lab import LabError
from topologies.lab.results import LabRequest, LabResult, load_result, save


def test_quick_measures_one_group_and_says_so_everywhere(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    assert run(tmp_path / "out", "--quick") == 0
    assert kernel.runs() == ["families-light-1"]
    document = read(tmp_path / "out")
    assert document["quick"] is True
    assert (document["arms"], document["seeds"], document["machine"]["datapath"]) == (2, [1], "uml")
    assert document["commits"] == [checkout.commit()]
    assert "--quick" in document["command"]
    assert [claim["metric"] for claim in document["headline"]] == ["mean_t90", "mean_t95", "mean_jct"]
    assert all("quick" in claim["claim"] for claim in document["headline"])
    assert document["headline"][0]["reduction"] == pytest.approx(0.5)
    assert (tmp_path / "out" / "jpas.png").read_bytes().startswith(b"\x89PNG")
    told = capsys.readouterr()
    assert "not to be quoted" in told.out
    assert "50%" in told.out


def test_groups_that_fail_do_not_stop_the_others_and_resume_goes_on(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    groups = jpas.groups()
    heavy = f"families-heavy-{FAMILY_SEEDS['heavy'][1]}"
    middle = f"families-middle-{FAMILY_SEEDS['middle'][-1]}"
    kernel.order(fail=(middle, heavy))
    assert run(tmp_path / "out") == 1
    assert sorted(kernel.runs()) == sorted(group.name for group in groups)
    told = " ".join(capsys.readouterr().err.split())
    assert f"{middle}: {middle} went wrong" in told
    assert f"{heavy}, {middle} failed; the same command with --resume" in told
    assert not (tmp_path / "out" / "summary.json").exists()
    kernel.order()
    kernel.forget()
    assert run(tmp_path / "out", "--resume") == 0
    assert sorted(kernel.runs()) == [heavy, middle]
    document = read(tmp_path / "out")
    assert (document["quick"], document["networks_at_once"]) == (False, 2)
    assert document["arms"] == sum(1 + len(group.knows) for group in groups)
    families = document["workloads"]["families"]
    assert set(families) == set(FAMILY_SEEDS)
    assert sorted(families["middle"]["target"]["seeds"]) == list(FAMILY_SEEDS["middle"])
    assert families["heavy"]["none"]["t90"]["reduction"] == pytest.approx(0.5)
    assert not any("quick" in claim["claim"] for claim in document["headline"])
    # Every arm is claimed, each against fair sharing on the seeds that it ran on.
    for of_load, arms in families.items():
        for knows in AT_HEAVY if of_load == "heavy" else BASIC:
            found = arms[knows]
            said = [
                claim
                for claim in document["headline"]
                if (claim["workload"], claim["load"], claim["knows"]) == ("families", of_load, knows)
            ]
            assert [claim["metric"] for claim in said] == ["mean_t90", "mean_t95", "mean_jct", "t90_above_alone"]
            won = [found[measure]["reduction"] for measure in ("t90", "t95", "jct")] + [found["t90"]["headroom_won"]]
            assert [claim["reduction"] for claim in said] == [*map(pytest.approx, won)]


@pytest.mark.usefixtures("two_groups")
def test_without_resume_everything_is_measured_anew(kernel: FakeKernel, tmp_path: Path) -> None:
    for _ in range(2):
        assert run(tmp_path / "out", "--quick") == 0
    assert kernel.runs() == ["families-light-1", "families-light-1"]


@pytest.mark.usefixtures("two_groups")
def test_a_quick_run_leaves_a_full_ones_summary_and_arms(kernel: FakeKernel, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "out"
    assert run(folder, "--quick") == 0
    assert read(folder)["quick"] is True, "where nothing else is, it is the claim's summary, and says that it is quick"
    assert run(folder) == 0
    whole = (folder / "summary.json").read_bytes()
    assert read(folder)["quick"] is False
    kernel.forget()
    assert run(folder, "--quick") == 0
    assert (folder / "summary.json").read_bytes() == whole
    assert read(folder / "quick")["quick"] is True
    told = "".join(capsys.readouterr().err.split())
    assert f"{folder}/summary.jsonbelongstoafullrunandstays" in told
    assert f"thisquickrunwrites{folder}/quick/summary.json" in told
    kernel.forget()
    assert run(folder, "--resume") == 0
    assert kernel.runs() == [], "the full run's arms are still there"


def test_a_summary_that_cannot_be_read_is_not_overwritten_by_a_quick_run(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    assert not evaluate.is_full(path)
    for text, full in (
        ("{", True),
        ("[]", True),
        ("{}", True),
        ('{"quick": false}', True),
        ('{"quick": true}', False),
        ('{"missing": ["a"]}', False),
    ):
        path.write_text(text)
        assert evaluate.is_full(path) is full


def test_quick_or_not_a_claim_has_one_place(kernel: FakeKernel, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(checkout, "ROOT", tmp_path)
    assert evaluate.main(["jpas", "--datapath", "uml", "--quick"]) == 0
    assert read(tmp_path / "results" / "jpas")["quick"] is True


@pytest.mark.usefixtures("two_groups")
def test_the_commits_of_all_groups_are_told(kernel: FakeKernel, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(checkout, "commit", lambda: "new")
    assert run(tmp_path / "out") == 0
    assert read(tmp_path / "out")["commits"] == ["new"]
    assert "commits" not in capsys.readouterr().err
    (tmp_path / "out" / "arms" / "families-light-1" / resume.ORIGIN).unlink()
    kernel.forget()
    monkeypatch.setattr(checkout, "commit", lambda: "later")
    assert run(tmp_path / "out", "--resume") == 0
    assert kernel.runs() == ["families-light-1"]
    assert (read(tmp_path / "out")["commits"], read(tmp_path / "out")["commit"]) == (["later", "new"], "later")
    assert "different commits: later, new" in " ".join(capsys.readouterr().err.split())


def result(datapath: str = "uml") -> LabResult:
    return LabResult(datapath, 13, 1e8, 8, None, {}, ())


def read_lab(folder: Path) -> LabResult:
    return load_result(folder / "lab.json")


def test_only_a_whole_result_of_the_same_request_and_datapath_is_taken(
    two_groups: tuple[Group, Group], tmp_path: Path
) -> None:
    request, other = (group.request() for group in two_groups)

    def found() -> resume.Measured | None:
        return resume.load(tmp_path, request, "uml", read_lab)

    assert found() is None
    save(tmp_path / "lab.json", result())
    assert found() is None, "a result of who knows what"
    resume.mark_whole(tmp_path, request, "abc")
    assert found() == resume.Measured(result(), "abc")
    assert resume.load(tmp_path, other, "uml", read_lab) is None
    turned = LabRequest(request.experiments, request.policies[::-1])
    assert resume.load(tmp_path, turned, "uml", read_lab) is None
    assert resume.load(tmp_path, request, "kernel", read_lab) is None
    save(tmp_path / "lab.json", result("user"))
    assert found() is None
    (tmp_path / "lab.json").write_text('{"datapath": "uml"}')
    assert found() is None, "a result of another version"
    save(tmp_path / "lab.json", result())
    (tmp_path / resume.ORIGIN).write_text("{")
    assert found() is None
    resume.mark_whole(tmp_path, request, "abc")
    resume.mark_unfinished(tmp_path)
    assert found() is None, "it is being measured anew"


def test_every_group_of_the_claim_comes_back_from_disk_as_it_was(tmp_path: Path) -> None:
    save(tmp_path / "lab.json", result())
    for group in jpas.groups():
        resume.mark_whole(tmp_path, group.request(), "abc")
        assert resume.load(tmp_path, group.request(), "uml", read_lab) is not None, group.name


@pytest.mark.usefixtures("two_groups")
def test_a_group_that_is_measured_anew_and_fails_is_not_kept(kernel: FakeKernel, tmp_path: Path) -> None:
    assert run(tmp_path / "out", "--quick") == 0
    kernel.order(fail=("families-light-1",))
    assert run(tmp_path / "out", "--quick") == 1
    kernel.order()
    assert run(tmp_path / "out", "--quick", "--resume") == 0
    assert kernel.runs() == ["families-light-1"] * 3


@dataclass(frozen=True)
class Sum:
    """What a group of ``Sums`` measures. Not on the emulated network."""

    of: tuple[int, ...]
    value: int
    datapath: str = NO_DATAPATH


@dataclass(frozen=True)
class SumGroup:
    seed: int
    numbers: tuple[int, ...]
    arms: int = 1

    @property
    def name(self) -> str:
        return f"sum-{self.seed}"

    def asked(self) -> tuple[int, ...]:
        return self.numbers

    def run(self, setting: Setting) -> Sum:
        assert setting.datapath is None
        assert setting.folder.name == self.name
        if not self.numbers:
            raise LabError("there is nothing to add up")
        made = Sum(self.numbers, sum(self.numbers))
        save(setting.folder / "sum.json", made)
        return made

    def read(self, folder: Path) -> Sum:
        return TypeAdapter(Sum).validate_json((folder / "sum.json").read_bytes())


class Sums:
    """A claim whose arms no lab runs."""

    DATAPATH = None

    def __init__(self, *numbers: tuple[int, ...]) -> None:
        self.numbers = numbers

    def groups(self, *, quick: bool, others: bool) -> list[SumGroup]:
        return [SumGroup(seed, numbers) for seed, numbers in enumerate(self.numbers[: 1 if quick else None])]

    def add_up(self, results) -> dict:
        return {"total": sum(found.value for _, found in results), "by_seed": {g.seed: r.value for g, r in results}}

    def headline(self, fields) -> list[dict]:
        return [
            summary.claim(
                "sums are small", metric="sum", unit="1", baseline=10.0, value=fields["total"], interval=(0, 1)
            )
        ]

    def tables(self, fields) -> list[Table]:
        return [Table(title=f"total {fields['total']}")]

    def plot(self, fields, folder: Path) -> None:
        (folder / "sums.txt").write_text(str(fields["total"]))


def evaluation(claim: Sums, folder: Path, *, resume: bool = False, quick: bool = False) -> evaluate.Evaluation:
    console = Console(stderr=True)
    return evaluate.Evaluation(
        claim,
        None,
        folder,
        console,
        boxes=4,
        resume=resume,
        quick=quick,
        choose_datapath=lambda _wanted: pytest.fail("it needs no datapath"),
    )


def test_a_claim_without_a_lab_is_measured_kept_and_resumed_by_its_own_value(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    with pytest.raises(LabError, match="sum-1 failed; the same command with --resume"):
        evaluation(Sums((1, 2), ()), tmp_path).document("scripts/evaluate sums")
    assert "sum-1: there is nothing to add up" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setattr(checkout, "commit", lambda: "later")
    made = evaluation(Sums((1, 2), (4,)), tmp_path, resume=True).document("scripts/evaluate sums")
    assert read(tmp_path)["total"] == 7
    assert (tmp_path / "sums.txt").read_text() == "7"
    assert made["machine"]["datapath"] == NO_DATAPATH
    assert (made["seeds"], made["networks_at_once"]) == ([0, 1], 1)
    assert len(made["commits"]) == 2, "the first group was kept from the run before"
    assert made["headline"][0]["claim"] == "sums are small"
    changed = evaluation(Sums((1, 3), (4,)), tmp_path, resume=True).document("scripts/evaluate sums")
    assert changed["by_seed"] == {0: 4, 1: 4}, "what answers something else is measured anew"


def test_only_claims_on_the_testbed_have_small_forms(tmp_path: Path) -> None:
    sums = evaluation(Sums((1, 2), (4,)), tmp_path)
    sums.small_form = tmp_path / "forms"
    with pytest.raises(LabError, match="this claim has no small form"):
        sums.document("scripts/evaluate sums")


class Emulated(Sums):
    """A claim that says where its switches run."""

    DATAPATH = "user"


@pytest.mark.parametrize(("asked", "taken"), [(None, "user"), ("auto", "auto"), ("uml", "uml")])
def test_a_claims_switches_run_where_it_says_unless_the_command_does(asked, taken, tmp_path: Path) -> None:
    wanted: list[str] = []
    console = Console(stderr=True)
    one = evaluate.Evaluation(
        Emulated((1, 2)), asked, tmp_path, console, None, resume=False, quick=True, choose_datapath=wanted.append
    )
    one.document("scripts/evaluate emulated")
    assert wanted == [taken]


def test_a_quick_run_of_any_claim_says_so(tmp_path: Path) -> None:
    made = evaluation(Sums((1, 2), (4,)), tmp_path, quick=True).document("scripts/evaluate sums --quick")
    assert (made["quick"], made["total"]) == (True, 3)
    assert "quick" in made["headline"][0]["claim"]
    assert (tmp_path / "quick" / "arms" / "sum-0" / "sum.json").exists()


def test_every_claim_that_is_named_is_there_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path / "rates.json", sasp_rates.rates())
    monkeypatch.setattr(rates, "FILE", tmp_path / "rates.json")
    for name in CLAIMS:
        found = load(name)
        groups = list(found.groups(quick=False, others=True))
        assert len({group.name for group in groups}) == len(groups) > 0
        assert all(group.arms > 0 for group in groups)
        assert len({group.seed for group in found.groups(quick=True, others=True)}) == 1
        fewer = list(found.groups(quick=False, others=False))
        # Beside the two arms of a seed of real trainings nothing stands.
        left, every = sum(group.arms for group in fewer), sum(group.arms for group in groups)
        assert 2 * len(fewer) <= left
        assert left < every or (name == "real" and fewer == groups)


def test_a_folder_that_cannot_be_written_is_one_line(kernel: FakeKernel, capsys) -> None:
    assert run(Path("/proc/nope"), "--quick") == 1
    assert "evaluate: /proc/nope: No such file or directory" in " ".join(capsys.readouterr().err.split())
    assert kernel.runs() == []


@pytest.mark.usefixtures("two_groups")
def test_a_full_disk_costs_a_group_not_the_evaluation(kernel: FakeKernel, tmp_path: Path, monkeypatch, capsys) -> None:
    def full(path: Path, value: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(resume, "save", full)
    assert run(tmp_path / "out", "--quick") == 1
    told = " ".join(capsys.readouterr().err.split())
    assert "No space left on device" in told
    assert "light-1 failed" in told


@pytest.mark.parametrize("wrong", [["no-such-claim"], ["jpas", "--boxes", "0"], ["jpas", "--boxes", "-3"], []])
def test_wrong_input_ends_with_status_2(wrong: list[str], capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        evaluate.main(wrong)
    assert ended.value.code == 2
    assert "usage:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGKILL, -9)]
)
def test_a_signal_to_the_parent_alone_ends_every_box(
    kernel: FakeKernel, tmp_path: Path, number: signal.Signals, status: int
) -> None:
    kernel.order(hang=True)
    command = ["-m", "evaluation.evaluate", "jpas", "--datapath", "uml", "--boxes", "2", "--results", tmp_path / "out"]
    with subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=os.environ, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            wait_until(lambda: len(kernel.runs()) == 2, 200.0)
            os.kill(process.pid, number)
            said = process.communicate(timeout=60)[1]
        finally:
            process.kill()
    assert process.returncode == status
    assert number == signal.SIGKILL or "stopped; the same command with --resume continues" in said
    assert "Traceback" not in said
    assert len(kernel.runs()) == 2, "a group began after the end"
    wait_until(lambda: not any(map(lives, kernel.processes())), 200.0)


def test_a_box_that_does_not_listen_is_ended_with_all_its_processes(kernel: FakeKernel, tmp_path: Path) -> None:
    kernel.order(hang="for ever")
    command = ["-m", "evaluation.evaluate", "jpas", "--quick", "--datapath", "uml", "--results", tmp_path / "out"]
    with subprocess.Popen([sys.executable, *command], cwd=ROOT, env=os.environ, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: len(kernel.runs()) == 1, 200.0)
            process.terminate()
            # Once more while the box still has its moment to end by itself.
            time.sleep(1)
            process.terminate()
            assert process.wait(60) == 143
        finally:
            process.kill()
    wait_until(lambda: not any(map(lives, kernel.processes())), 200.0)
