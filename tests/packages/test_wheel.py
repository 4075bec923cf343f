"""The wheel in an empty environment for each role: the role's command runs with what the extra installs, and no more.

The packages come from the index that ``scripts/setup`` uses, in the versions of ``requirements/lock.txt``.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import requests
import yaml

from evaluation.bench.support.free_port import free_port
from evaluation.bench.support.hosts.reporter_server import ReporterServer
from evaluation.bench.support.waiting import wait_until
from tests.support.paths import ROOT

UV = Path(sys.executable).with_name("uv")
NOT_SHIPPED = shutil.ignore_patterns(".*", "results", "tests", "docs", "build", "*.egg-info", "__pycache__")
TRACE = "3 2\n1 0 1 1 1 2:10\n2 5 1 2 1 0:20\n"


class Environment:
    """A virtual environment with the wheel and the extras of one role."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"

    def run(
        self, program: str, *arguments: str | Path, seconds: float = 120, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the environment, in an empty folder, so that the checkout's packages are not found."""
        return subprocess.run(
            [self.bin / program, *arguments],
            cwd=self.bin.parent, env=clean() | variables, capture_output=True, text=True, check=False, timeout=seconds,
        )  # fmt: skip


def clean() -> dict[str, str]:
    """The process's environment variables without those that lead Python to the checkout."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, in which a build leaves its files."""
    return shutil.copytree(ROOT, tmp_path_factory.mktemp("source") / "trainyard", ignore=NOT_SHIPPED)


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    subprocess.run([*command, folder, source], check=True, timeout=120)
    (built,) = folder.glob("trainyard-*.whl")
    return built


def installed(
    package: Path, folder: Path, extra: str | None = None, *, uv: Sequence[str | Path] = (), system: bool = False
) -> Environment:
    """An environment with a wheel or a checkout and one extra; ``system``: it sees the system's packages (Mininet)."""
    options = ["--system-site-packages"] if system else []
    subprocess.run([UV, "venv", "--quiet", "--python", "/usr/bin/python3", *options, folder], check=True, timeout=60)
    what = str(package) if extra is None else f"{package}[{extra}]"
    command = [UV, "pip", "install", "--quiet", "--python", folder / "bin" / "python", *uv]
    command += ["--constraint", ROOT / "requirements" / "lock.txt", what]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert done.returncode == 0, done.stderr
    return Environment(folder)


@pytest.fixture(scope="module")
def base(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return installed(wheel, tmp_path_factory.mktemp("base") / "env")


@pytest.fixture(scope="module")
def for_controllers(base: Environment) -> list[str | Path]:
    """The options of the documented command, from the paths that the base installation prints."""
    paths = {kind: base.run("trainyard", "constraints", kind).stdout.strip() for kind in ("override", "build")}
    assert all(Path(path).is_file() for path in paths.values())
    return ["--override", paths["override"], "--build-constraint", paths["build"]]


def test_the_base_installation_is_the_agent_and_reports(base: Environment, tmp_path: Path) -> None:
    found = subprocess.run(
        [UV, "pip", "list", "--python", base.bin / "python", "--format", "json"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    names = {package["name"] for package in json.loads(found.stdout)}
    assert names - {"pydantic-core", "annotated-types", "typing-extensions", "typing-inspection"} == {
        "trainyard", "pydantic", "pyyaml",
    }  # fmt: skip
    assert base.run("host-reporter", "--version").stdout.startswith("host-reporter ")
    server = ReporterServer()
    options = [
        "--controller",
        server.url,
        "--host",
        "h1",
        "--no-marking",
        "--jobs-dir",
        tmp_path,
        "--progress-dir",
        tmp_path,
    ]
    agent = subprocess.Popen(
        [base.bin / "host-reporter", *options], cwd=tmp_path, env=clean(), stderr=subprocess.PIPE, text=True
    )
    try:
        wait_until(lambda: server.reports, what="the agent's first report")
    finally:
        agent.terminate()
        _, errors = agent.communicate(timeout=30)
        server.stop()
    assert agent.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["jobs"], "client"),
        (["console"], "client"),
        (["order", "--policy", "fair", "snapshot.json"], "simulator"),
        (["sim", "--workload", "training-light", "--policy", "fair"], "simulator"),
        (["certs", "folder"], "controller"),
        (["check-config", "trainyard.yaml"], "controller"),
        (["controller"], "controller"),
    ],
)
def test_the_base_installation_names_the_extra_that_a_command_needs(
    base: Environment, arguments: list[str], extra: str
) -> None:
    done = base.run("trainyard", *arguments)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert extra in done.stderr
    assert "Traceback" not in done.stderr


def test_the_nic_extra_has_what_tensorlights_needs(wheel: Path, tmp_path: Path) -> None:
    environment = installed(wheel, tmp_path / "env", "nic")
    done = environment.run("python", "-c", "import host_reporter.nic.traffic_control.control")
    assert done.returncode == 0, done.stderr


def test_the_controller_and_its_client_run(source: Path, for_controllers: list[str | Path], tmp_path: Path) -> None:
    # From the checkout, as the install guide says: the build constraint holds for its build, too.
    environment = installed(source, tmp_path / "env", "controller", uv=for_controllers)
    port = free_port()
    config = tmp_path / "trainyard.yaml"
    settings = {
        "hosts": [{"name": "h1", "address": "10.0.0.1"}], "openflow": {"port": free_port()}, "api": {"port": port},
        "ovsdb": f"unix:{tmp_path}/none.sock",
    }  # fmt: skip
    config.write_text(yaml.safe_dump(settings))
    assert environment.run("trainyard", "check-config", config).returncode == 0
    log = tmp_path / "log"
    with log.open("w") as out:
        controller = subprocess.Popen(
            [environment.bin / "ryu-manager", "controller.app"],
            cwd=tmp_path, env=clean() | {"TRAINYARD_CONFIG": str(config)}, stdout=out, stderr=out,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:

        def answers() -> bool:
            assert controller.poll() is None, log.read_text()
            try:
                return requests.get(f"{url}/healthz", timeout=2).ok
            except requests.RequestException:
                return False

        wait_until(answers, 60, what="the controller's first answer")
        done = environment.run("trainyard", "jobs", "--url", url, "--json")
        assert (done.returncode, json.loads(done.stdout)["jobs"]) == (0, []), done.stderr
        for path in ("/", "/console/vendor/plotly.min.js"):
            assert requests.get(url + path, timeout=10).ok, path
    finally:
        controller.terminate()
        controller.wait(30)
    assert controller.returncode == 0, log.read_text()


def test_the_simulator_runs(wheel: Path, tmp_path: Path) -> None:
    environment = installed(wheel, tmp_path / "env", "simulator")
    trace = tmp_path / "trace.txt"
    trace.write_text(TRACE)
    # Two coflows need no compiled loops, which take half a minute.
    options = ["--trace", trace, "--policy", "sebf", "--json"]
    done = environment.run("trainyard", "sim", *options, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)


def test_the_lab_and_the_evaluation_find_all_they_need(
    wheel: Path, for_controllers: list[str | Path], tmp_path: Path
) -> None:
    environment = installed(wheel, tmp_path / "env", "evaluation", uv=for_controllers, system=True)
    missing = tmp_path / "none.yaml"
    lab = environment.run("trainyard", "lab", "--policy", "fair", missing)
    assert (lab.returncode, "none.yaml" in lab.stderr, "Traceback" in lab.stderr) == (2, True, False), lab.stderr
    done = environment.run("python", "-c", "import topologies.emulation, topologies.lab.lab, evaluation.jpas.claim")
    assert done.returncode == 0, done.stderr
    done = environment.run("python", "-m", "evaluation.evaluate", "--help")
    assert done.returncode == 0, done.stderr
