"""What a job's output says of it fills its spec where its job file leaves that open."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.wire import JobSpec, MetricSpec
from evaluation.bench.support.waiting import wait_until
from host_reporter.jobs.described import described_spec
from host_reporter.readers.parse import Described
from tests.support.agent.followed_jobs import World


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    built = World(tmp_path)
    yield built
    built.stop()


LOSS = Described("lm loss", "min", 500.0)


@pytest.mark.parametrize(
    ("spec", "metric", "iterations"),
    [
        ({}, MetricSpec(name="lm loss", direction="min"), 500.0),
        ({"iterations": 9.0}, MetricSpec(name="lm loss", direction="min"), 9.0),
        ({"metric": {"name": "acc", "direction": "max"}}, MetricSpec(name="acc", direction="max"), 500.0),
        ({"metric": {"name": "my loss"}}, MetricSpec(name="my loss", direction="min"), 500.0),
    ],
)
def test_what_the_job_file_says_stays(spec: dict[str, object], metric: MetricSpec, iterations: float) -> None:
    found = described_spec(JobSpec.model_validate(spec), LOSS)
    assert (found.metric, found.iterations) == (metric, iterations)
    JobSpec.model_validate_json(found.model_dump_json())


def test_a_name_is_cut_and_cleaned_for_the_wire() -> None:
    found = described_spec(JobSpec(), Described("a\x1b\u202e" + "x" * 100, "min"))
    assert found.metric.name == "a??" + "x" * 60
    assert described_spec(JobSpec(), Described("thing", None, None)) == JobSpec()


def test_values_of_the_training_are_none_of_the_validation(world: World) -> None:
    world.job(progress={"log": str(world.log)})
    world.log.write_text(
        "".join(f"iter {s}: loss 9.5, time 52.83ms, mfu 7.05%\n" for s in (0, 1, 2))
        + "".join(f"step {s}: train loss 9, val loss {v}\n" for s, v in ((4, 5), (5, 4)))
    )
    world.start()
    wait_until(lambda: 5 in world.receiver.points("a"))
    spec = world.receiver.specs["a"][-1]
    assert spec is not None
    assert spec.metric == MetricSpec(name="val loss", direction="min")
    added = [(point.iteration, point.metric) for point in world.receiver.added]
    assert added == [(1, None), (2, None), (3, None), (4, 5), (5, 4)]


def test_a_job_is_registered_anew_with_what_its_log_says(world: World) -> None:
    world.job(progress={"log": str(world.log)})
    world.start()
    wait_until(lambda: world.receiver.calls)
    world.log.write_text("".join(f"epoch 1/10 step {s}/100 loss {1 / s}\n" for s in (10, 20, 30)))
    wait_until(lambda: 30 in world.receiver.points("a"))
    specs = [spec for spec in world.receiver.specs["a"] if spec is not None]
    assert specs[-1].metric == MetricSpec(name="loss", direction="min")
    assert specs[-1].iterations == 1000
    order = world.receiver.order("a")
    assert order.index("add") > len(order) - 1 - order[::-1].index("declare"), "its points come after that"
    assert len(specs) <= 3
    assert json.dumps(specs[-1].model_dump(mode="json"))


def test_lines_that_cannot_be_read_are_reported_by_number_and_reason_alone(world: World) -> None:
    world.log.write_text("password=abc123\n" * 150)
    world.job(progress={"log": str(world.log)})
    world.start()
    wait_until(lambda: world.receiver.unread.get("a"))
    (reason,) = world.receiver.unread["a"]
    assert "no line so far matches a known format" in reason
    assert "(150 lines so far)" in reason
    assert "abc123" not in reason
    with world.log.open("a") as log:
        log.writelines(f"step {i} loss 0.5\n" for i in (1, 2, 3))
    wait_until(lambda: world.receiver.unread["a"][-1] == "")
    assert len(world.receiver.unread["a"]) == 2


def test_the_count_of_lines_is_reported_again_when_it_has_doubled(world: World) -> None:
    world.log.write_text("nothing\n" * 150)
    world.job(progress={"log": str(world.log)})
    world.start()
    wait_until(lambda: world.receiver.unread.get("a"))
    with world.log.open("a") as log:
        log.write("nothing\n" * 149)
    time.sleep(0.3)
    with world.log.open("a") as log:
        log.write("nothing\n")
    wait_until(lambda: len(world.receiver.unread["a"]) == 2)
    assert [reason.rpartition(" (")[2] for reason in world.receiver.unread["a"]] == [
        "150 lines so far)",
        "300 lines so far)",
    ]


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        ({"log": "{log}", "metric": "bleu"}, "step {0} hunter2_acc: 0.5\n"),
        ({"csv": "{log}", "fields": {"iteration": "step"}}, "a,hunter2,n\n{0},1,2\n"),
    ],
)
def test_names_that_stand_in_the_output_stay_on_the_host(
    world: World, progress: dict[str, object], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.log.write_text("".join(text.format(step) for step in range(200)))
    world.job(
        progress={
            key: value.format(log=world.log) if isinstance(value, str) else value for key, value in progress.items()
        }
    )
    world.start()
    wait_until(lambda: world.receiver.unread.get("a"))
    wait_until(lambda: "hunter2" in caplog.text)
    assert "hunter2" not in "".join(world.receiver.unread["a"])
