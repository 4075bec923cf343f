"""How late gradients are is recorded of each arm that the study has, where the study looks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluation.sasp import delays
from evaluation.sasp.emulation.events import Event, Used
from evaluation.sasp.emulation.recording import PARTS, Recording, read
from evaluation.sasp.study.arms import ARMS
from evaluation.sasp.study.recorded import at_ratio, recording_of
from evaluation.sasp.testbed import lab
from evaluation.sasp.testbed.request import TASK_NAMES, SaspRequest, SaspResult
from sasp.core.scheme import parse
from sasp.training.partial import MEASURED, TRIED, WARM_UP
from topologies.errors import LabError
from topologies.lab.results import save


class Lab:
    """Answers each request with no arms, and leaves that where the lab would, beside a recording of each training."""

    def __init__(self) -> None:
        self.asked: list[SaspRequest] = []

    def run(self, asked: SaspRequest, wanted: str, folder: Path) -> None:
        self.asked.append(asked)
        if asked.transport == "ranks" and asked.task == "mlp":
            raise LabError("the network does not start")
        for training in asked.trainings:
            (folder / training.name).mkdir(parents=True, exist_ok=True)
            parts = {"server": Recording(4, training.scheme, 16, (Event("push", 0, 1, 2, 1.2345678),), ())}
            parts["0"] = Recording(4, training.scheme, 16, (), (Used(0, 1, 2, 3, 4),))
            for name, part in parts.items():
                part.write(folder / training.name / f"{PARTS}-{name}.json")
        save(folder / lab.RESULT, SaspResult("uml", "2.0", 0.1, 1000, 1e6, ()))

    def read(self, folder: Path) -> SaspResult:
        return lab.LAB.read(folder)


@pytest.fixture
def testbed(monkeypatch: pytest.MonkeyPatch) -> Lab:
    made = Lab()
    monkeypatch.setattr(delays, "LAB", made)
    monkeypatch.setattr(delays, "choose", lambda _wanted: "uml")
    return made


def test_each_arm_is_recorded_over_all_that_it_goes_over() -> None:
    recorded = {
        (training.name, transport)
        for transport in ("server", "ranks")
        for training in delays.request("cnn", transport, 1.0).trainings
    }
    assert recorded == {(arm.folder, transport) for arm in ARMS.values() for transport in arm.transports}
    asked = delays.request("mlp", "ranks", 0.5)
    assert asked.record
    assert asked.ratio == 0.5
    for training in asked.trainings:
        assert training.target is None
        assert parse(training.scheme).together
        assert training.iterations == (delays.CHOOSING_ITERATIONS if training.ways.partial else delays.ITERATIONS)
    # The choice of late layers is over before what stands for a job begins: all are late, the guess, and halves of 15.
    assert delays.CHOOSING_ITERATIONS // 4 >= WARM_UP + MEASURED + (2 + 4) * (WARM_UP + TRIED)


def test_arms_may_be_named(testbed: Lab, tmp_path: Path) -> None:
    assert delays.main(["--task", "cnn", "--arm", "partial", "late, momentum, gap", "--out", str(tmp_path)]) == 0
    recorded = [[training.name for training in one.trainings] for one in testbed.asked]
    assert recorded == [["partial"], ["partial", "late-momentum-gap"]]


def test_what_is_recorded_is_not_recorded_again(
    testbed: Lab, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert delays.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.endswith("the network does not start\n")
    assert [(one.task, one.transport) for one in testbed.asked] == [
        (task, transport) for task in TASK_NAMES for transport in ("server", "ranks")
    ]
    testbed.asked.clear()
    assert delays.main(["--task", "cnn", "mlp", "--over", "server", "--out", str(tmp_path)]) == 0
    assert testbed.asked == []
    assert f"{tmp_path / 'mlp-server'}: it is there" in capsys.readouterr().err
    # With another ratio it is something else.
    twice = ["--task", "cnn", "--over", "server", "--ratio", "2", "--out", str(tmp_path)]
    assert delays.main([*twice, "--arm", "partial, local", "--small-form", str(tmp_path / "small")]) == 0
    assert [one.ratio for one in testbed.asked] == [2.0]
    path = recording_of(at_ratio(tmp_path / "small", 2.0), "cnn", "partial, local", "server")
    assert read(path).events
    assert delays.main(["--task", "cnn", "--over", "server", "--out", str(tmp_path)]) == 0
    assert len(testbed.asked) == 1, "what was recorded where communication takes as long is still there"


@pytest.mark.usefixtures("testbed")
def test_what_is_recorded_of_an_arm_is_one_file_where_the_study_looks_for_it(tmp_path: Path) -> None:
    small, out = tmp_path / "small", tmp_path / "out"
    asked = ["--task", "cnn", "--over", "server", "--out", str(out), "--small-form", str(small)]
    for _ in range(2):
        assert delays.main(asked) == 0
        assert len(list(small.rglob("*.json.xz"))) == len(delays.request("cnn", "server", 1.0).trainings)
        path = recording_of(small, "cnn", "late, gap", "server")
        assert path.parent == small / "cnn-server"
        found = read(path)
        assert found == read(out / "cnn-server" / "late-gap").rounded()
        assert found.events == (Event("push", 0, 1, 2, 1.23457),)
        assert found.used == (Used(0, 1, 2, 3, 4),)
    assert recording_of(out, "cnn", "late, gap", "server") == out / "cnn-server" / "late-gap"


def test_a_file_that_is_no_recording_is_refused(tmp_path: Path) -> None:
    for name, content in {"late.json.xz": b"no archive", "late.json": b"{}"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match="no recording of a job"):
            read(tmp_path / name)
