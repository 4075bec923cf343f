"""What the frameworks' callbacks add to an iteration, in real trainings, in .venv-frameworks."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from statistics import median

from evaluation.bench.figures import Bench, Figure
from simulator.reports.statistics import mean_interval
from topologies import checkout

ROUNDS = 5
LIMIT_MS = 0.1
_PYTHON = checkout.ROOT / ".venv-frameworks" / "bin" / "python"
_SCRIPT = Path(__file__).parents[1] / "support" / "frameworks" / "callback_costs.py"
_SECONDS = 1200.0

NAMES = {"plain": "PyTorch's", "keras": "Keras's", "lightning": "Lightning's", "transformers": "Transformers'"}


def run(_folder: Path, _data: Path | None) -> Bench:
    """Measure. Raises RuntimeError where the environment is missing, or a training failed."""
    if not _PYTHON.exists():
        raise RuntimeError("there is no .venv-frameworks; run: scripts/setup --frameworks")
    try:
        done = subprocess.run(
            [_PYTHON, _SCRIPT, "--rounds", f"{ROUNDS}"],
            capture_output=True, text=True, check=False, timeout=_SECONDS, cwd=checkout.ROOT,
            env=os.environ | {"PYTHONPATH": str(checkout.ROOT)},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise RuntimeError(f"the trainings took more than {_SECONDS:g} s") from error
    if done.returncode != 0:
        raise RuntimeError(f"the trainings failed: {done.stderr.strip().rpartition(chr(10))[2]}")
    found: dict[str, list[list[float]]] = json.loads(done.stdout.strip().rpartition("\n")[2])
    inside = [_inside(framework, found[framework]) for framework in NAMES]
    loop = [(with_it - without, without) for _, without, with_it in found["plain"]]
    study = [(with_it - without, without) for without, with_it in found["study"]]
    return Bench(
        figures=(
            *inside,
            _figure("A plain loop with the callback takes longer by", "plain_loop_added", loop, "a step without it"),
            _figure(
                "A report of an Optuna trial, and the question whether to go on, take longer by",
                "optuna_added",
                study,
                "a report and a question without it",
            ),
        ),
        details={"rounds": found},
    )


def _inside(framework: str, rounds: list[list[float]]) -> Figure:
    pairs = [(one[0], one[1]) for one in rounds]
    claim = f"{NAMES[framework]} callback, of an iteration, takes"
    return _figure(claim, f"{framework}_callback", pairs, "an iteration without it")


def _figure(claim: str, metric: str, rounds: list[tuple[float, float]], beside: str) -> Figure:
    return Figure(
        claim,
        metric=metric,
        unit="ms",
        value=1e3 * median(ours for ours, _ in rounds),
        baseline=1e3 * median(floor for _, floor in rounds),
        baseline_name=beside,
        ci95=mean_interval([1 - ours / floor for ours, floor in rounds]),
        limit=LIMIT_MS,
    )
