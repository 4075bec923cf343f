"""``scripts/setup`` where something is missing: one clear line, with the tools' own words kept in a log."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT

NOISE = "first line of noise\nsecond line of noise"


class Checkout:
    """A copy of what ``scripts/setup`` reads, and the commands that it finds on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "checkout"
        self.path = folder / "bin"
        self.path.mkdir()
        self.logs = folder / "tmp"
        self.logs.mkdir()
        (self.folder / "scripts").mkdir(parents=True)
        for name in ("scripts/setup", "setup.cfg", "pyproject.toml"):
            shutil.copy(ROOT / name, self.folder / name)
        for name in ("requirements", "controller/constraints"):
            shutil.copytree(ROOT / name, self.folder / name)
        (self.folder / "simulator" / "kernel").mkdir(parents=True)
        for name in ("jit", "events", "rates"):
            (self.folder / "simulator" / "kernel" / f"{name}.py").touch()
        self.command("dpkg-query", "echo -n install ok installed")
        self.command("id", "echo 0")

    def command(self, name: str, script: str) -> None:
        """A command on the PATH, or one of .venv if it has a slash."""
        path = self.folder / name if "/" in name else self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def fails(self, name: str) -> None:
        self.command(name, f"printf '{NOISE}\\n' >&2; exit 9")

    def environment(self) -> dict[str, str]:
        return os.environ | {"PATH": f"{self.path}:{os.environ['PATH']}", "TMPDIR": str(self.logs)}

    def set_up(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.folder / "scripts" / "setup", *arguments],
            env=self.environment() | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


COMPILING = "setup: compiling the simulator's loops, which takes half a minute or more"


def lines(done: subprocess.CompletedProcess[str]) -> list[str]:
    """What was said but for what is said each time."""
    assert done.stdout == ""
    return [line for line in done.stderr.splitlines() if line not in ("setup: making .venv", COMPILING)]


def log_of(line: str) -> str:
    found = re.search(r"what was said: (\S+)$", line)
    assert found, line
    return Path(found[1]).read_text()


def with_environment(checkout: Checkout) -> None:
    """All of .venv is there already, and whatever is asked of it works."""
    for name in ("python", "uv"):
        checkout.command(f".venv/bin/{name}", f"echo '{NOISE}'")
    sees_the_system(checkout, ".venv")


def sees_the_system(checkout: Checkout, environment: str) -> None:
    """Mininet is a package of the system's Python; an environment that does not see those is made anew."""
    (checkout.folder / environment / "pyvenv.cfg").write_text("include-system-site-packages = true\n")


def test_all_is_well(checkout: Checkout) -> None:
    with_environment(checkout)
    done = checkout.set_up()
    assert (done.returncode, lines(done)) == (0, ["setup: done"])
    assert list(checkout.logs.iterdir()) == [], "no log is left"
    assert lines(checkout.set_up()) == [], "the second time there is nothing to do"


def test_the_simulators_loops_are_compiled_once_and_again_when_they_change(checkout: Checkout) -> None:
    with_environment(checkout)
    runs = checkout.folder / "runs"
    checkout.command(".venv/bin/python", f'case "$*" in "-m simulator.compiling") echo >>{runs} ;; esac')
    assert checkout.set_up().stderr.splitlines() == ["setup: making .venv", COMPILING, "setup: done"]
    assert checkout.set_up().stderr == ""
    (checkout.folder / "simulator" / "kernel" / "events.py").write_text("changed = 1\n")
    assert checkout.set_up().stderr.splitlines() == [COMPILING]
    assert len(runs.read_text()) == 2


def test_loops_that_cannot_be_compiled_are_one_line_and_left_for_later(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command(".venv/bin/python", f'case "$*" in "-m simulator.compiling") echo "{NOISE}"; exit 1 ;; esac')
    done = checkout.set_up()
    assert done.returncode == 0
    first, second = lines(done)
    assert first.startswith("setup: could not compile the simulator's loops; the first trainyard sim does it")
    assert log_of(first) == f"{NOISE}\n"
    assert second == "setup: done"
    assert len(lines(checkout.set_up())) == 1, "the next time it tries again"


def test_packages_that_cannot_be_had_are_one_line_and_the_rest_goes_on(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command("dpkg-query", 'case "$4" in mininet) exit 1 ;; *) echo -n install ok installed ;; esac')
    checkout.fails("apt-get")
    done = checkout.set_up()
    assert done.returncode == 0
    first, second, third = lines(done)
    assert (first, third) == ("setup: installing mininet", "setup: done")
    assert second.startswith("setup: could not install mininet: apt-get needs a network and Debian's archive;")
    assert log_of(second) == f"{NOISE}\n"


def without(checkout: Checkout, *packages: str) -> Path:
    """They are missing until apt-get installs them. Returns the file with the commands that were run, a line each."""
    with_environment(checkout)
    ran, there = checkout.folder / "ran", checkout.folder / "there"
    absent = "|".join(packages)
    checkout.command(
        "dpkg-query", f'case "$4" in {absent}) [ -e {there} ] || exit 1 ;; esac; echo -n install ok installed'
    )
    checkout.command("systemctl", f'echo systemctl "$@" >>{ran}')
    checkout.command("apt-get", f'echo apt-get "$@" >>{ran}; [ "$1" = update ] || touch {there}')
    return ran


@pytest.mark.parametrize(
    ("packages", "units"),
    [
        (["prometheus"], "prometheus.service"),
        (["slurmctld", "slurmd", "slurm-client", "munge"], "slurmctld.service slurmd.service munge.service"),
    ],
)
def test_services_are_masked_before_their_packages_are_installed(
    checkout: Checkout, packages: list[str], units: str
) -> None:
    ran = without(checkout, *packages)
    done = checkout.set_up()
    assert (done.returncode, lines(done)) == (0, [f"setup: installing {' '.join(packages)}", "setup: done"])
    masked, updated, installed = ran.read_text().splitlines()
    assert masked == f"systemctl mask {units}"
    assert updated == "apt-get update"
    assert installed == f"apt-get install -y --no-install-recommends {' '.join(packages)}"
    assert lines(checkout.set_up()) == []
    assert len(ran.read_text().splitlines()) == 3, "one that is there, perhaps an operator's own, is left alone"


def test_what_has_no_service_is_installed_without_a_mask(checkout: Checkout) -> None:
    ran = without(checkout, "mpich")
    assert checkout.set_up().returncode == 0
    assert [line.split()[0] for line in ran.read_text().splitlines()] == ["apt-get", "apt-get"]


def test_packages_whose_services_would_start_are_not_installed(checkout: Checkout) -> None:
    ran = without(checkout, "slurm-client", "munge", "mpich")
    checkout.fails("systemctl")
    done = checkout.set_up()
    assert done.returncode == 0
    first, second, third = lines(done)
    assert first.startswith(
        "setup: not installed, because their services could not be masked and would start: slurm-client munge; what"
    )
    assert log_of(first) == f"{NOISE}\n"
    assert (second, third) == ("setup: installing mpich", "setup: done")
    assert ran.read_text().splitlines()[-1] == "apt-get install -y --no-install-recommends mpich"


def test_who_wants_the_lab_is_told_at_once_that_it_is_not_there(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command("dpkg-query", 'case "$4" in mininet) exit 1 ;; *) echo -n install ok installed ;; esac')
    checkout.fails("apt-get")
    done = checkout.set_up("--lab")
    assert done.returncode == 1
    first, second = lines(done)
    assert first == "setup: installing mininet"
    assert second.startswith("setup: could not install mininet:")


LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"


def test_who_else_installs_packages_is_waited_for(checkout: Checkout) -> None:
    with_environment(checkout)
    there = checkout.folder / "there"
    checkout.command("dpkg-query", f'[ "$4" != mininet ] || [ -e {there} ] || exit 1; echo -n install ok installed')
    free = checkout.folder / "free"
    checkout.command("sleep", f"touch {free}")
    checkout.command(
        "apt-get", f'[ -e {free} ] || {{ echo "{LOCKED}" >&2; exit 100; }}; [ "$1" = update ] || touch {there}'
    )
    done = checkout.set_up("--lab")
    assert (done.returncode, lines(done)) == (
        0,
        ["setup: installing mininet", "setup: another program is installing packages; waiting for it", "setup: done"],
    )
    assert list(checkout.logs.iterdir()) == [], "no log is left"


def test_who_never_ends_installing_packages_is_told_of(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command("dpkg-query", 'case "$4" in mininet) exit 1 ;; *) echo -n install ok installed ;; esac')
    slept = checkout.folder / "slept"
    checkout.command("sleep", f"echo $1 >>{slept}")
    checkout.command("apt-get", f'echo "{LOCKED}" >&2; exit 100')
    last = lines(checkout.set_up("--lab"))[-1]
    assert last.startswith("setup: could not install mininet: another program is still installing packages;")
    assert log_of(last) == f"{LOCKED}\n"
    assert sum(map(float, slept.read_text().split())) == pytest.approx(600, rel=0.02)


def test_two_at_once_take_turns(checkout: Checkout) -> None:
    with_environment(checkout)
    with (checkout.folder / "scripts" / "setup").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = subprocess.Popen(
            [checkout.folder / "scripts" / "setup"], env=checkout.environment(), stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr is not None
        assert waiting.stderr.readline() == "setup: another scripts/setup is at work in this checkout; waiting for it\n"
        assert waiting.poll() is None
        fcntl.flock(held, fcntl.LOCK_UN)
    _, said = waiting.communicate(timeout=60)
    assert (waiting.returncode, said.splitlines()[-1]) == (0, "setup: done")


def test_packages_without_root_are_one_line(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command("dpkg-query", 'case "$4" in mininet) exit 1 ;; *) echo -n install ok installed ;; esac')
    checkout.command("id", "echo 1000")
    checkout.fails("sudo")
    done = checkout.set_up()
    assert lines(done)[0] == "setup: missing Debian packages need root; run: sudo apt-get install mininet"
    assert done.returncode == 0


def test_no_venv_module_is_one_line_and_leaves_no_half_environment(checkout: Checkout) -> None:
    shadow = checkout.path / "venv"
    shadow.mkdir()
    (shadow / "__init__.py").touch()
    (shadow / "__main__.py").write_text(f"import os, sys\nos.mkdir('.venv')\nprint({NOISE!r})\nsys.exit(1)\n")
    done = checkout.set_up(PYTHONPATH=str(checkout.path))
    (line,) = lines(done)
    assert done.returncode == 1
    assert line.startswith("setup: could not make .venv: it needs the package python3-venv (sudo apt-get install")
    assert log_of(line) == f"{NOISE}\n"
    assert not (checkout.folder / ".venv").exists()


@pytest.mark.parametrize(
    ("program", "when", "expected"),
    [
        ("python", "-m", "could not install uv=="),
        ("uv", "-r", "could not install requirements/lock.txt: uv needs a network and a package index"),
        ("uv", "--editable", "could not install this checkout into .venv: remove .venv and try again"),
    ],
)
def test_no_network_is_one_line(checkout: Checkout, program: str, when: str, expected: str) -> None:
    with_environment(checkout)
    checkout.command(f".venv/bin/{program}", f'case " $* " in *" {when} "*) echo "{NOISE}"; exit 1 ;; esac')
    done = checkout.set_up()
    (line,) = lines(done)
    assert done.returncode == 1
    assert expected in line
    assert log_of(line) == f"{NOISE}\n"
    assert not (checkout.folder / ".venv" / ".trainyard-stamp").exists(), "the next time it tries again"


def with_frameworks(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command(".venv-frameworks/bin/python", f"echo '{NOISE}'")
    sees_the_system(checkout, ".venv-frameworks")


def test_the_frameworks_have_an_environment_of_their_own(checkout: Checkout) -> None:
    with_frameworks(checkout)
    done = checkout.set_up("--frameworks")
    said = ["setup: done", "setup: making .venv-frameworks", "setup: done"]
    assert (done.returncode, lines(done)) == (0, said)
    assert lines(checkout.set_up("--frameworks")) == [], "the second time there is nothing to do"
    assert lines(checkout.set_up()) == []


def test_the_docs_have_an_environment_of_their_own_that_follows_its_lock(checkout: Checkout) -> None:
    with_environment(checkout)
    checkout.command(".venv-docs/bin/python", f"echo '{NOISE}'")
    sees_the_system(checkout, ".venv-docs")
    done = checkout.set_up("--docs")
    assert (done.returncode, lines(done)) == (0, ["setup: done", "setup: making .venv-docs", "setup: done"])
    assert lines(checkout.set_up("--docs")) == [], "the second time there is nothing to do"
    with (checkout.folder / "requirements" / "docs.lock.txt").open("a") as lock:
        lock.write("mkdocs-other==1\n")
    assert "setup: making .venv-docs" in lines(checkout.set_up("--docs"))


@pytest.mark.parametrize(
    ("program", "when", "expected"),
    [
        (".venv/bin/uv", "requirements/frameworks.lock.txt", "could not install requirements/frameworks.lock.txt: uv"),
        (".venv-frameworks/bin/python", "torch==2.13.0", "could not install torch==2.13.0: pip needs a network"),
    ],
)
def test_frameworks_without_a_network_are_one_line(checkout: Checkout, program: str, when: str, expected: str) -> None:
    with_frameworks(checkout)
    checkout.command(program, f'case " $* " in *" {when} "*) echo "{NOISE}"; exit 1 ;; esac')
    done = checkout.set_up("--frameworks")
    assert done.returncode == 1
    assert expected in lines(done)[-1]
    assert log_of(lines(done)[-1]) == f"{NOISE}\n"
    assert (checkout.folder / ".venv" / ".trainyard-stamp").exists(), "the other environment is whole"
    assert not (checkout.folder / ".venv-frameworks" / ".trainyard-stamp").exists()


def test_an_unknown_option_is_refused(checkout: Checkout) -> None:
    done = checkout.set_up("--framework")
    assert (done.returncode, done.stderr) == (2, "usage: scripts/setup [--lab|--frameworks|--docs]\n")
