"""Ray Tune's experiments, on a local Ray: each trial a job, rungs and brackets stages."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray import tune
from ray.tune.schedulers import ASHAScheduler, HyperBandScheduler, TrialScheduler

from host_reporter.integrations.ray import Trials
from tests.support.frameworks.running_agent import Yard

CPUS = 3


@pytest.fixture(scope="module", autouse=True)
def local_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    # Ray's workers do not find this module.
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(
        num_cpus=CPUS, include_dashboard=False, log_to_driver=False, logging_level="ERROR", configure_logging=False
    )
    yield
    ray.shutdown()


def train(config: dict[str, Any]) -> None:
    """A trial as good as its number; it goes on from its checkpoint, as synchronous halving needs it."""
    begin = 0
    if (checkpoint := tune.get_checkpoint()) is not None:
        begin = int((Path(checkpoint.path) / "step").read_text())
    for step in range(begin + 1, 28):
        time.sleep(config["seconds"])
        folder = Path(config["folder"]) / f"{config['number']}-{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "step").write_text(str(step))
        tune.report({"accuracy": float(config["number"]) * step}, checkpoint=tune.Checkpoint(str(folder)))


def run(
    folder: Path, scheduler: TrialScheduler, callback: Trials, trials: int, seconds: float = 0.02, cpus: int = 1
) -> Any:
    space = {"number": tune.grid_search(list(range(trials))), "folder": str(folder / "points"), "seconds": seconds}
    tuner = tune.Tuner(
        tune.with_resources(train, {"cpu": cpus}),
        param_space=space,
        tune_config=tune.TuneConfig(metric="accuracy", mode="max", scheduler=scheduler, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=str(folder / "ray"), callbacks=[callback], verbose=0),
    )
    return tuner.fit()


def records(folder: Path, study: str) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.glob(f"{study}.*.jsonl"))
    }


def stages(trial: list[dict[str, Any]]) -> list[tuple[str, float | None, int]]:
    return [(record["stage"], record.get("until"), record["rungs_left"]) for record in trial if "stage" in record]


def test_rungs_of_asha(yard: Yard, tmp_path: Path) -> None:
    yard.study("asha")
    scheduler = ASHAScheduler(time_attr="training_iteration", max_t=9, grace_period=1, reduction_factor=3)
    callback = Trials("asha", scheduler, metric="accuracy", directory=yard.progress, target=0.92)
    results = run(tmp_path, scheduler, callback, 4, seconds=0.3)
    assert results.num_errors == 0
    told = records(yard.progress, "asha")
    assert len(told) == 4
    rungs = [("b0.r0", 1.0, 2), ("b0.r1", 3.0, 1), ("b0.r2", 9.0, 0)]
    by_length = sorted((stages(trial) for trial in told.values()), key=len)
    assert by_length[-1][:3] == rungs, "the best one goes through all"
    assert by_length[0][0] == rungs[0]
    lengths = {result.metrics["trial_id"]: result.metrics["training_iteration"] for result in results}
    for trial_id, length in lengths.items():
        state = yard.wait_ended(f"asha.{trial_id}")
        assert state["iterations_done"] == length
        assert state["spec"]["stage"].startswith("asha.b0.r")
        assert state["spec"]["target"] == 0.92


def test_brackets_and_rungs_of_hyperband(yard: Yard, tmp_path: Path) -> None:
    """Synchronous: trials pause at the end of a rung, and some go on in the next."""
    yard.study("bands")
    scheduler = HyperBandScheduler(time_attr="training_iteration", max_t=9, reduction_factor=3)
    callback = Trials("bands", scheduler, metric="accuracy", directory=yard.progress)
    # One trial at a time: Ray 2 neither stops nor resumes a trial whose pause is not yet saved when its bracket's last
    # trial ends, and the study never ends. Slow, for a trial that ends before the agent sees its file is no job.
    results = run(tmp_path, scheduler, callback, 9, seconds=0.2, cpus=CPUS)
    assert results.num_errors == 0
    told = {job: stages(trial) for job, trial in records(yard.progress, "bands").items()}
    assert len(told) == 9
    # max_t 9 and eta 3: the first bracket's trials run to the end, the second's have rungs that end at 3 and at 9.
    firsts = [trial for trial in told.values() if trial[0][0].startswith("b0.")]
    seconds = [trial for trial in told.values() if trial[0][0].startswith("b1.")]
    assert firsts
    assert seconds
    assert all(trial[0] == ("b0.r0", 9.0, 0) for trial in firsts)
    assert all(trial[0] == ("b1.r0", 3.0, 1) for trial in seconds)
    assert any(("b1.r1", 9.0, 0) in trial for trial in seconds)
    for job in told:
        yard.wait_ended(job)


def test_another_scheduler_and_no_job_file(tmp_path: Path) -> None:
    scheduler = tune.schedulers.FIFOScheduler()
    callback = Trials("plain", scheduler, metric="accuracy", directory=tmp_path / "progress")
    results = run(tmp_path, scheduler, callback, 1, seconds=0.0)
    assert results.num_errors == 0
    ((_, trial),) = records(tmp_path / "progress", "plain").items()
    assert stages(trial) == []
    assert [record["iteration"] for record in trial if "iteration" in record] == list(range(1, 28))
    assert trial[-1]["ended"] is True
