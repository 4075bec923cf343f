"""Real trainings without job file or callback: the agent finds them, and reads what they write."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluation.bench.support.api_client import Controller
from tests.support.frameworks.found_training import FoundTraining, Known, job_of
from tests.support.frameworks.running_agent import Agent, Yard

OWN = secrets.token_hex(3)
"""A part of names that no other test of this machine uses now."""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--local-addr=127.0.0.1")
MEETING = ("--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0")


class Framework(NamedTuple):
    """A training of ``module``, the metric that is read of it, and a file of the framework's own, which has it, too.

    ``named`` is how a job file names that file, ``done`` and ``iterations`` what it shows: Keras's has epochs alone.
    """

    module: str
    metric: str
    kept: str
    named: str
    done: float
    iterations: float | None


KERAS = Framework("keras3", "val_loss", "training.csv", "training.csv", 5, None)
METRICS = "lightning_logs/version_0/metrics.csv"
LIGHTNING = Framework("lightning_trainer", "val_loss", METRICS, METRICS, 60, None)
STATE = "out/checkpoint-{}/trainer_state.json"
HUGGING_FACE = Framework("hugging_face", "eval_loss", STATE.format(60), STATE.format("*"), 60, 60)
OPTIONS = {"keras3": ("--verbose=1",)}


@pytest.fixture(scope="module")
def finder(controller: Controller, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yard]:
    """The controller, and an agent of host h1 that finds jobs by itself."""
    agent = Agent(tmp_path_factory.mktemp("finder"), controller.url, discover="trainyard,torchrun")
    try:
        yield Yard(controller, agent)
    finally:
        agent.stop()
    assert "Traceback" not in agent.said, agent.said


def assert_followed(finder: Yard, job: str, known: Known, launcher: str) -> dict[str, Any]:
    """The job has ended, and the controller knows of it what the framework has kept. All metrics here are losses."""
    state = finder.wait_ended(job)
    spec = state["spec"]
    assert state["parts"]["h1"]["launcher"] == launcher
    assert (spec["metric"]["name"], spec["metric"]["direction"]) == (known.metric, "min")
    assert (spec["iterations"], state["iterations_done"]) == (known.iterations, known.done)
    assert state["last_metric"] == pytest.approx(known.last, rel=5e-3)
    return state


@pytest.mark.parametrize("framework", [KERAS, LIGHTNING, HUGGING_FACE], ids=lambda framework: framework.module)
def test_a_training_with_its_output_in_a_file(finder: Yard, tmp_path: Path, framework: Framework) -> None:
    """Its output is found. What it closes after each write is found by nobody, and a job file names it."""
    name = f"{framework.module.replace('_', '-')}-{OWN}"
    beside = f"{name}-file"
    finder.job(beside, 5130, progress={"log": str(tmp_path / framework.named)})
    training = FoundTraining(tmp_path, framework.module, *OPTIONS.get(framework.module, ()))
    training.run(TRAINYARD_JOB=name)
    known = training.knew(framework.metric, framework.kept)
    assert_followed(finder, job_of(name), known, "trainyard")
    finder.wait(lambda: finder.state(beside)["last_metric"] == pytest.approx(known.last))
    state = finder.state(beside)
    finder.remove(beside)
    assert (state["iterations_done"], state["spec"].get("iterations")) == (framework.done, framework.iterations)
    assert state["spec"]["metric"]["name"] == known.metric
    finder.wait_ended(beside)


def test_two_ranks_of_torchrun_are_one_training(finder: Yard, tmp_path: Path) -> None:
    training = FoundTraining(tmp_path, "hugging_face")
    training.run([*TORCHRUN, f"--rdzv-id=gpt-{OWN}", *MEETING], GLOO_SOCKET_IFNAME="lo")
    known = training.knew(HUGGING_FACE.metric, HUGGING_FACE.kept)
    state = assert_followed(finder, job_of(f"torchrun-gpt-{OWN}"), known, "torchrun")
    assert state["parts"]["h1"]["world_size"] == 2
