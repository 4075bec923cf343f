"""Emulated late gradients, which go through the product's code, against the same training written out by hand."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from evaluation.sasp import rates
from evaluation.sasp.emulation.events import Event, Used, even_events
from evaluation.sasp.emulation.recording import Recording, read
from evaluation.sasp.study import __main__ as study
from evaluation.sasp.study import task_study, times, training
from evaluation.sasp.study.arms import ARMS, going_over
from evaluation.sasp.study.recorded import at_ratio
from evaluation.sasp.study.runs import Goal, Run, Trained
from evaluation.sasp.study.tasks import TASKS, Task, make_optimizer
from sasp.core.errors import SaspError
from sasp.core.partial import LayerTimes, Times

WORKERS, ITERATIONS, RATE = 3, 12, 0.02


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def run_of(task: Task, arm: str, leads: int, strength: float = 0.0) -> Run:
    model = task.seeded_model(1)
    layers = len(training.find_layers(model, model.parameters()))
    return Run(task.name, arm, "sgd", RATE, strength, 1, ITERATIONS, WORKERS, (leads,) * layers)


def by_hand(task: Task, *, delay: int, together: bool) -> list[torch.Tensor]:
    """Workers compute with parameters that lack ``delay`` iterations; each pushes, or all of them together."""
    model = task.seeded_model(1)
    held = [nn.Parameter(parameter.detach().clone()) for parameter in model.parameters()]
    optimizer = torch.optim.SGD(held, lr=RATE, momentum=0.9)
    data = [task.data(1, rank, WORKERS) for rank in range(WORKERS)]
    first = [parameter.detach().clone() for parameter in held]
    seen = [deque([first] * (delay + 1), maxlen=delay + 1) for _ in range(WORKERS)]
    for iteration in range(ITERATIONS):
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1.0, (iteration + 1) / training.WARM_UP)
        computed = []
        for rank in range(WORKERS):
            with torch.no_grad():
                for mine, then in zip(model.parameters(), seen[rank][0], strict=True):
                    mine.copy_(then)
            loss = task.loss(model, next(data[rank].batches))
            computed.append(torch.autograd.grad(loss, list(model.parameters())))
        for ranks in [range(WORKERS)] if together else [[rank] for rank in range(WORKERS)]:
            for number, parameter in enumerate(held):
                parameter.grad = torch.stack([computed[rank][number] for rank in ranks]).sum(0) / WORKERS
            optimizer.step()
            for rank in ranks:
                seen[rank].append([parameter.detach().clone() for parameter in held])
    # A worker without a barrier is answered before the others' last gradients come in.
    return seen[0][-1]


def emulated(task: Task, run: Run, monkeypatch: pytest.MonkeyPatch, *, apart: bool = False) -> list[torch.Tensor]:
    """Worker 0's parameters at the end, flushed."""
    found: list[list[torch.Tensor]] = []

    def look(model: nn.Module, looked_at: nn.Module, metric: object) -> float:
        found.append([parameter.detach().clone() for parameter in model.parameters()])
        return 0.0

    monkeypatch.setattr(training, "_look", look)
    training.train(run, Goal(run.iterations), apart=apart)
    return found[-1]


@pytest.mark.parametrize(
    ("arm", "delay", "together"),
    [
        ("bsp+overlap", 0, True),
        ("late", 1, True),
        ("late by 2", 2, True),
        ("asp+overlap", 0, False),
        ("asp+sasp:2", 2, False),
    ],
)
def test_late_gradients_are_as_late_as_the_arm_says(
    arm: str, delay: int, together: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS["cnn"]
    last = emulated(task, run_of(task, arm, delay), monkeypatch)
    expected = by_hand(task, delay=delay, together=together)
    for mine, theirs in zip(last, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-6)


AS_ONE = [name for name, arm in ARMS.items() if arm.scheme.together and arm.layers != "needed"
          and arm.late.prediction != "local"]  # fmt: skip


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        *((arm, "cnn") for arm in AS_ONE),
        *((arm, name) for name in ("transformer", "mlp") for arm in ("late, momentum", "halves")),
    ],
)
def test_ranks_that_compute_as_one_train_as_they_would_apart(
    arm: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = TASKS[name]
    run = run_of(task, arm, ARMS[arm].leads(Times(1.0, (LayerTimes(0, 1, 1),)))[0], ARMS[arm].strengths[0])
    apart, as_one = [emulated(task, run, monkeypatch, apart=apart) for apart in (True, False)]
    for mine, theirs in zip(as_one, apart, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=1e-5)


def test_a_training_ends_at_its_goal_and_is_the_begin_of_a_longer_one() -> None:
    task = TASKS["cnn"]
    run = replace(run_of(task, "late", 1), iterations=40)
    whole = training.train(run, Goal(40)).points
    assert training.train(run, Goal(15)).points == whole[:2]
    # Each of the first three looks is above the target.
    assert training.train(run, Goal(40, target=0.0)).points == whole[:3]


def test_a_short_recording_makes_gradients_as_late_in_a_long_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recording is of what the arm does without one, so both trainings are the same."""
    task, arm = TASKS["cnn"], ARMS["asp+sasp:2"]
    run = replace(run_of(task, arm.name, 2), iterations=20)
    layers = len(run.leads)
    events = [
        event._replace(at=event.iteration + event.worker / 8 + (event.kind == "send") / 16)
        for event in even_events(arm.scheme, WORKERS, layers, range(1, 13))
    ]
    used = [
        Used(worker, iteration, layer, 0, max(0, iteration - 3))
        for worker in range(WORKERS) for iteration in range(1, 13) for layer in range(layers)
    ]  # fmt: skip
    recording = Recording(WORKERS, str(arm.scheme), training.CHUNK_BYTES, tuple(events), tuple(used))
    assert recording.iteration_seconds == pytest.approx(1.0)
    recording.write(tmp_path / "delays.json")
    expected = emulated(task, run, monkeypatch)
    found = emulated(task, replace(run, delays=str(tmp_path / "delays.json")), monkeypatch)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize(("arm", "lead", "steps"), [("late, local", 1, 1), ("bsp+overlap", 0, 1), ("halves", 1, 2)])
def test_a_recording_over_all_reduce_makes_gradients_as_late(
    arm: str, lead: int, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of the ranks lie in a folder; as above, they are of what the arm does without them."""
    task = TASKS["cnn"]
    run = replace(run_of(task, arm, lead), iterations=20)
    layers, recorded = len(run.leads), range(1, 12 * steps + 1)
    for rank in range(WORKERS):
        used = [
            Used(rank, iteration, layer, 0, max(0, iteration - 1 - lead))
            for iteration in recorded
            for layer in range(layers)
        ]
        events = [Event("push", rank, layer, i, 0.5 * i + layer / 64) for i in recorded for layer in range(layers)]
        Recording(WORKERS, "", 4096, tuple(events), tuple(used)).write(tmp_path / f"delays-{rank}.json")
    assert read(tmp_path).iteration_seconds == pytest.approx(0.5)
    expected = emulated(task, run, monkeypatch, apart=True)
    found = emulated(task, replace(run, delays=str(tmp_path)), monkeypatch)
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_recording_over_all_reduce_is_not_taken_for_steps_of_each_worker(tmp_path: Path) -> None:
    Recording(WORKERS, "", 4096, (), ()).write(tmp_path / "delays-0.json")
    run = replace(run_of(TASKS["cnn"], "asp+overlap", 0), delays=str(tmp_path))
    with pytest.raises(SaspError, match="was recorded over all-reduce, and asp"):
        training.train(run, Goal(10))


@pytest.mark.parametrize(
    ("arm", "why"), [("halves", "goes over all-reduce"), ("late, momentum, gap", "go only with prediction='none'")]
)
def test_a_recording_over_a_server_is_not_taken_for_ways_that_it_does_not_have(
    arm: str, why: str, tmp_path: Path
) -> None:
    Recording(WORKERS, "bsp+sasp:1", training.CHUNK_BYTES, (), ()).write(tmp_path / "delays.json")
    run = replace(run_of(TASKS["cnn"], arm, 1), delays=str(tmp_path / "delays.json"))
    with pytest.raises(SaspError, match=why):
        training.train(run, Goal(10))


@pytest.mark.parametrize("arm", [name for name, arm in ARMS.items() if arm.layers == "all"])
def test_every_way_goes_through_its_iterations(arm: str) -> None:
    task = TASKS["cnn"]
    run = replace(run_of(task, arm, ARMS[arm].scheme.lead, ARMS[arm].strengths[-1]), iterations=60)
    trained = training.train(run, Goal(run.iterations))
    assert [iteration for iteration, _ in trained.points] == [10, 20, 30, 40, 50, 60, 60]
    assert all(0.3 < metric <= 1 for _, metric in trained.points)
    if max(run.leads) == 1 and ARMS[arm].scheme.together:
        # Gradients that lack two iterations, or steps a worker, teach little so soon.
        assert trained.points[-1][1] > 0.55, "half of the pairs are guessed"


def test_prediction_computes_nearer_to_what_will_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a steady direction, momentum's prediction is nearer to the synchronous training than none."""
    task = TASKS["mlp"]
    synchronous = emulated(task, run_of(task, "bsp+overlap", 0), monkeypatch)
    distances = {}
    for arm in ("late", "late, momentum"):
        last = emulated(task, run_of(task, arm, 1), monkeypatch)
        distances[arm] = sum(float((a - b).norm()) for a, b in zip(last, synchronous, strict=True))
    assert distances["late, momentum"] < 0.7 * distances["late"]


@pytest.mark.parametrize("name", TASKS)
def test_each_task_has_data_a_model_and_times(name: str) -> None:
    task = TASKS[name]
    offsets = times.measure(task)
    model = task.seeded_model(2)
    data = task.data(2, 1, WORKERS)
    batch = next(data.batches)
    assert len(next(data.batches).inputs) == len(batch.inputs)
    assert torch.isfinite(task.loss(model, batch))
    with torch.no_grad():
        assert data.metric(model) == data.metric(task.seeded_model(2))
    assert len(offsets.sizes) == len(offsets.needed) > 3
    assert offsets.needed[0] < offsets.needed[-1]
    assert all(0 <= n < r <= 1.2 for n, r in zip(offsets.needed, offsets.ready, strict=True))
    assert sum(layer.seconds for layer in offsets.times(0.5, 0.1).layers) == pytest.approx(0.5)
    for optimizer in task.rate:
        make_optimizer(optimizer, model, task.rate[optimizer])


def test_a_study_whose_time_is_up_says_that_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["study", "tune", "--task", "mlp", "--minutes", "0", "--out", str(tmp_path)])
    assert study.main() == 1
    assert "the same command goes on" in capsys.readouterr().err
    (tmp_path / "mlp-adamw.jsonl").write_text("nonsense\n")
    assert study.main() == 2
    assert "mlp-adamw.jsonl:1: no run of the study" in capsys.readouterr().err


def test_gradients_are_as_late_as_was_recorded_at_the_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded, asked = tmp_path / "recorded", dict[str, set[str]]()
    for ratio, seconds in ((1.0, 2.0), (0.5, 0.25)):
        for name in ("bsp+overlap", "late"):
            folder = at_ratio(recorded, ratio) / "mlp-server" / name
            folder.mkdir(parents=True)
            events = tuple(Event("push", 0, 0, i, seconds * i) for i in range(1, 13))
            Recording(1, "bsp", 4096, events, ()).write(folder / "delays-server.json")

    def fast(run: Run, goal: Goal) -> Trained:
        asked.setdefault(run.arm, set()).add(run.delays)
        return Trained(run, tuple((10 * i, float(i > 2)) for i in range(1, goal.iterations // 10 + 1)))

    monkeypatch.setattr(task_study, "train", fast)
    common = ["--task", "mlp", "--arm", "bsp+overlap", "late", "--delays", str(recorded), "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["study", "tune", "--ratio", "0.5", *common])
    assert study.main() == 0
    # Nothing is late in the first, which sets the targets: it trains alike at all ratios.
    assert asked == {
        "bsp+overlap": {str(recorded / "mlp-server" / "bsp+overlap")},
        "late": {str(recorded / "ratio-0.5" / "mlp-server" / "late")},
    }
    shown = capsys.readouterr().out
    assert shown.count(" 0.25 ") == 2, shown


def test_an_arm_is_asked_for_over_a_transport_that_it_can_go_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for over, arms, problem in (
        ("server", ["late", "halves"], "halves: not over server; say --over ranks"),
        ("ranks", ["asp+overlap"], "asp+overlap: not over ranks; say --over server"),
    ):
        monkeypatch.setattr("sys.argv", ["study", "tune", "--over", over, "--out", str(tmp_path), "--arm", *arms])
        assert study.main() == 2
        assert capsys.readouterr().err == f"{problem}\n"


def test_the_claims_rates_come_from_finished_records_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fast(run: Run, goal: Goal) -> Trained:
        """Late gradients take longer to learn from, and the middle rate is the best."""
        middle, points = TASKS[run.task].rate[run.optimizer], list[tuple[int, float]]()
        taken = 20 + 10 * len(run.arm) + 100 * abs(math.log10(run.rate / middle))
        while not goal.is_met(points):
            points.append((10 * (len(points) + 1), float(10 * len(points) >= taken)))
        return Trained(run, tuple(points))

    common = ["--out", str(tmp_path), "--write", str(tmp_path / "rates.json")]
    monkeypatch.setattr(task_study, "train", fast)
    monkeypatch.setattr("sys.argv", ["study", "rates", *common])
    assert study.main() == 1
    assert "not all arms are tuned yet" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["study", "tune", *common])
    assert study.main() == 0
    monkeypatch.setattr("sys.argv", ["study", "compare", "--task", "cnn", "--arm", "late", *common])
    assert study.main() == 0
    monkeypatch.setattr(task_study, "train", None)
    monkeypatch.setattr("sys.argv", ["study", "rates", *common])
    assert study.main() == 0
    found = rates.load(tmp_path / "rates.json")
    assert set(found.tasks) == set(TASKS)
    assert set(found.defaults.values()) == {"partial"}, "it has the shortest name, and so the fewest iterations"
    for name, of_task in found.tasks.items():
        assert set(of_task.arms["server"]) == set(going_over("server"))
        assert set(of_task.arms["ranks"]) == {"bsp+overlap", "partial", "partial, momentum", "partial, local"}
        assert of_task.arms["server"]["late"].rate == pytest.approx(TASKS[name].rate[of_task.optimizer])
        assert len(of_task.sizes) == len(of_task.needed) == len(of_task.ready) > 3
    late = found.tasks["cnn"].arms["server"]["late"].compared
    assert late is not None
    assert late.last == 1.0
    assert found.tasks["cnn"].arms["server"]["late, gap"].compared is None
    # How long iterations take on the testbed decides which arm becomes the default.
    monkeypatch.setattr("sys.argv", ["study", "rates", "--seconds", str(tmp_path / "recorded"), *common])
    assert study.main() == 2
    assert "recorded/cnn-server/bsp+overlap" in capsys.readouterr().err
    for name in TASKS:
        for arm, transport in ((one, over) for one in ARMS.values() for over in one.transports):
            folder = tmp_path / "recorded" / f"{name}-{transport}" / arm.folder
            folder.mkdir(parents=True)
            seconds = {"asp+overlap": 0.25, "partial, local" if transport == "ranks" else "partial": 0.5}
            events = tuple(Event("push", 0, 0, i, seconds.get(arm.name, 2.0) * i) for i in range(1, 13))
            Recording(1, "bsp", 4096, events, ()).write(folder / "delays-server.json")
    assert study.main() == 0
    found = rates.load(tmp_path / "rates.json")
    assert found.defaults == {"server": "partial", "ranks": "partial, local"}
    assert found.tasks["mlp"].arms["server"]["late"].iteration_seconds == pytest.approx(2.0)
