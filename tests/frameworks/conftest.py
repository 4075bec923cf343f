"""A real controller and a real agent for the tests of the frameworks' callbacks; they run in .venv-frameworks."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

# Set before a framework is imported.
os.environ |= {"KERAS_BACKEND": "torch", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
os.environ |= {"HF_HUB_OFFLINE": "1", "RAY_USAGE_STATS_ENABLED": "0", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
os.environ |= {"RAY_AIR_NEW_OUTPUT": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}

if importlib.util.find_spec("torch") is None:
    raise pytest.UsageError("tests/frameworks runs in .venv-frameworks: scripts/test frameworks")

from evaluation.bench.support.api_client import Controller
from tests.support.frameworks.running_agent import Agent, Yard


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What the frameworks warn of is theirs; what we warn of is still an error."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture(scope="session")
def controller(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Controller]:
    made = Controller(tmp_path_factory.mktemp("controller"), policy="beamer", period_seconds=0.2).start()
    yield made
    made.stop()


@pytest.fixture
def yard(controller: Controller, tmp_path: Path) -> Iterator[Yard]:
    """The controller, an agent of host h1, and the folder where trainings of that host tell their progress."""
    agent = Agent(tmp_path, controller.url)
    try:
        yield Yard(controller, agent)
    finally:
        agent.stop()
    assert "Traceback" not in agent.said, agent.said


@pytest.fixture(scope="session")
def calibrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This device, calibrated by the command in a process of its own."""
    path = tmp_path_factory.mktemp("prophet") / "device.json"
    done = subprocess.run(
        [sys.executable, "-m", "deepprophet", "--calibrate", "--quick", "--calibration", str(path), "--json"],
        cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["operators"] > 300
    assert (told["threads"], told["kind"]) == (1, "cpu")
    assert told["date"].endswith("Z")
    return path
