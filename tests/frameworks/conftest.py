"""A real controller and a real agent for the tests of the frameworks' callbacks; they run in .venv-frameworks."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

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
def from_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel installs, and nothing else of the checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    left_out = shutil.ignore_patterns(".*", "results", "tests", "docs", "build", "*.egg-info", "__pycache__")
    source = shutil.copytree(ROOT, folder / "source", ignore=left_out)
    build = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        folder,
    ]
    subprocess.run([*build, source], check=True, timeout=120)
    (wheel,) = folder.glob("trainyard-*.whl")
    installed = folder / "installed"
    with ZipFile(wheel) as archive:
        archive.extractall(installed)
    shutil.rmtree(source)
    return installed


@pytest.fixture(scope="session")
def calibrated(from_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This device, calibrated as on a machine that has the wheel and PyTorch, and neither a checkout nor a network."""
    folder = tmp_path_factory.mktemp("prophet")
    path = folder / "device.json"
    alone = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    command = [sys.executable, "-m", "deepprophet", "--calibrate", "--quick", "--calibration", str(path), "--json"]
    environment = os.environ | {"PYTHONPATH": str(from_wheel)}
    where = [sys.executable, "-c", "import deepprophet; print(deepprophet.__file__)"]
    found = subprocess.run(where, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert Path(found.stdout.strip()).is_relative_to(from_wheel)
    done = subprocess.run(
        [*alone, "sh", "-ec", 'ip link set lo up; exec "$@"', "sh", *command],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["operators"] > 300
    assert (told["threads"], told["kind"]) == (1, "cpu")
    assert told["date"].endswith("Z")
    return path
