"""Open vSwitch's two daemons: the ones that run, or our own for as long as they are needed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from topologies.box.processors import at_once

RUN_FOLDER = Path("/var/run/openvswitch")
SOCKET = RUN_FOLDER / "db.sock"
DATABASE = f"unix:{SOCKET}"
OWN_DATABASE = RUN_FOLDER / "trainyard.db"
"""What only daemons that we started serve."""
_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_STOP_SECONDS = 5.0
_COUNT_SECONDS = 10.2
_ANSWER_SECONDS = 30
"""What a daemon may take to answer: one that is just losing a testbed's ports on a busy machine takes seconds."""


class OpenVSwitchError(RuntimeError):
    """Open vSwitch does not run and cannot be started, or refuses a change; one line says why."""


class NoAnswerError(OpenVSwitchError):
    """A daemon runs and does not answer. It must not be taken for one that is not there."""


def vsctl(*arguments: str) -> str:
    """What ``ovs-vsctl`` prints for one transaction. Raises OpenVSwitchError."""
    return _ask(["ovs-vsctl", f"--db={DATABASE}"], *arguments)


def database_runs() -> bool:
    """Whether the database serves. Raises NoAnswerError where it hangs."""
    return SOCKET.exists() and _answers(lambda: vsctl("--no-wait", "show"))


def switch_runs() -> bool:
    """Whether the switch itself runs. Raises NoAnswerError where it hangs."""
    return _answers(lambda: _ask(["ovs-appctl", "-t", "ovs-vswitchd"], "version"))


def running() -> bool:
    """Whether both daemons run. Raises NoAnswerError where one hangs."""
    return database_runs() and switch_runs()


def _answers(ask: Callable[[], str]) -> bool:
    try:
        ask()
    except NoAnswerError:
        raise
    except OpenVSwitchError:
        return False
    return True


def _ask(tool: list[str], *arguments: str) -> str:
    return _call([*tool, f"--timeout={_ANSWER_SECONDS}", *arguments]).stdout


@contextlib.contextmanager
def started() -> Iterator[None]:
    """Open vSwitch runs meanwhile; what runs already is left alone, what we started is stopped after."""
    if running():
        yield
        return
    try:
        start()
        yield
    finally:
        end(OWN_DATABASE)


def start() -> None:
    """Start both daemons with an empty database. Raises OpenVSwitchError; ``end`` is due in any case."""
    RUN_FOLDER.mkdir(parents=True, exist_ok=True)
    OWN_DATABASE.unlink(missing_ok=True)
    _call(["ovsdb-tool", "create", str(OWN_DATABASE), _SCHEMA])
    common = ["--detach", "--no-chdir", "--verbose=off"]
    pid_file = RUN_FOLDER / "ovsdb-server.pid"
    _call(["ovsdb-server", str(OWN_DATABASE), f"--remote=punix:{SOCKET}", f"--pidfile={pid_file}", *common])
    vsctl("--no-wait", "init")
    start_switch()


def start_switch() -> None:
    """Start ovs-vswitchd alone, on the database that runs. Raises OpenVSwitchError."""
    # A switch has processors of its own; here it must not wait for the hosts' work.
    _call(
        [
            *at_once(),
            "ovs-vswitchd",
            DATABASE,
            f"--pidfile={RUN_FOLDER / 'ovs-vswitchd.pid'}",
            "--detach",
            "--no-chdir",
            "--verbose=off",
        ]
    )


def end(database: Path) -> None:
    """End the daemons that serve ``database``, whoever started them; others are left alone. Harmless when repeated."""
    server = _daemon("ovsdb-server")
    if server is not None and str(database) not in _command_line(server):
        # Ours are gone, and somebody's are in their place.
        return
    for pid in (_daemon("ovs-vswitchd"), server):
        if pid is not None:
            _stop(pid)
    # The kernel keeps the ports of a switch that was killed.
    with contextlib.suppress(OpenVSwitchError):
        _call(["ovs-dpctl", "del-dp", "ovs-system"])
    for path in (SOCKET, database):
        path.unlink(missing_ok=True)


def _daemon(name: str) -> int | None:
    """The process that a daemon's pid file names, if that is the daemon."""
    with contextlib.suppress(OSError, ValueError):
        pid = int((RUN_FOLDER / f"{name}.pid").read_text())
        if Path(f"/proc/{pid}/comm").read_text().strip() == name:
            return pid
    return None


def _command_line(pid: int) -> list[str]:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def wait_for_clock() -> None:
    """Wait until the kernel has run long enough for ovs-vswitchd to serve a new bridge.

    ovs-vswitchd 3.1 counts its processors again when 10 s have gone by since it last did, and takes its never
    having done so for the moment of boot: a bridge made earlier gets no thread for packets without a flow.
    """
    time.sleep(max(0.0, _COUNT_SECONDS - time.clock_gettime(time.CLOCK_MONOTONIC)))


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise OpenVSwitchError(f"{command[0]} is missing: install the package openvswitch-switch") from error
    if done.returncode == -signal.SIGALRM:
        raise NoAnswerError(f"{command[0]}: Open vSwitch runs and gives no answer within {_ANSWER_SECONDS} s")
    if done.returncode != 0:
        raise OpenVSwitchError(f"{command[0]}: {(done.stderr.strip().splitlines() or ['failed'])[-1]}")
    return done


def _stop(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, 15)
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            os.kill(pid, 0)
            time.sleep(0.02)
        os.kill(pid, 9)
