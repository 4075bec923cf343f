"""Ray Tune with two trials: tables of the trials, and each trial's result.json and progress.csv."""

from __future__ import annotations

from pathlib import Path

import ray
from ray import tune

from evaluation.logs.truth import OUTPUT, Series, Truth

ITERATIONS = 6
RATES = (0.1, 0.3)
START = 4.0


def train(config: dict[str, float]) -> None:
    """Descend on a parabola, print, and report."""
    place = START
    for iteration in range(ITERATIONS):
        place -= config["lr"] * place
        print(f"iteration {iteration + 1} loss {place**2:.4f}", flush=True)
        tune.report({"loss": place**2})


def main() -> None:
    """Run both trials one after the other on one processor."""
    here = Path.cwd()
    ray.init(num_cpus=1, include_dashboard=False, object_store_memory=100_000_000, _temp_dir=str(here / "ray"))
    tuner = tune.Tuner(
        train, param_space={"lr": tune.grid_search(list(RATES))},
        tune_config=tune.TuneConfig(metric="loss", mode="min"),
        run_config=tune.RunConfig(name="parabola", storage_path=str(here / "results")),
    )  # fmt: skip
    results = tuner.fit()
    ray.shutdown()
    trials = [Series("loss", "min", ITERATIONS) for _ in RATES]
    for trial, rate in zip(trials, RATES, strict=True):
        for iteration in range(1, ITERATIONS + 1):
            trial.add(iteration, (START * (1 - rate) ** iteration) ** 2)
    files = {
        f"results/parabola/trial_{number}/{name}": trial
        for number, trial in enumerate(trials)
        for name in ("result.json", "progress.csv")
    }
    for trial, result in zip(trials, results, strict=True):
        files[f"ray/session/logs/worker-{result.metrics['pid']}.out"] = trial
    # The output has the lines of both trials, each behind its process.
    Truth(trials[0], {OUTPUT: trials[0], **files}).write()


if __name__ == "__main__":
    main()
