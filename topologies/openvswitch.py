"""Open vSwitch's two daemons: those that run already, or our own for as long as a lab needs them."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from topologies import tools
from topologies.box.processors import at_once

RUN_FOLDER = Path("/var/run/openvswitch")
SOCKET = RUN_FOLDER / "db.sock"
DATABASE = f"unix:{SOCKET}"
OWN_DATABASE = RUN_FOLDER / "trainyard.db"
"""Only daemons that a lab has started serve this database."""
_SCHEMA = "/usr/share/openvswitch/vswitch.ovsschema"
_STOP_SECONDS = 5.0
_COUNT_SECONDS = 10.2
_ANSWER_SECONDS = 30
"""A daemon may take this many seconds to answer. On a busy machine it takes seconds to drop a testbed's ports."""


class OpenVSwitchError(RuntimeError):
    """Open vSwitch does not run and cannot be started, or refuses a change. The message is one line."""


class NoAnswerError(OpenVSwitchError):
    """A daemon runs and does not answer. This is not the same as a daemon that does not run."""


def vsctl(*arguments: str) -> str:
    """Run one transaction of ``ovs-vsctl`` and return what it prints. Raises OpenVSwitchError."""
    return _ask(["ovs-vsctl", f"--db={DATABASE}"], *arguments)


def database_runs() -> bool:
    """Returns whether the database answers. Raises NoAnswerError where it hangs."""
    return SOCKET.exists() and _answers(lambda: vsctl("--no-wait", "show"))


def switch_runs() -> bool:
    """Returns whether the switch itself runs. Raises NoAnswerError where it hangs."""
    return _answers(lambda: _ask(["ovs-appctl", "-t", "ovs-vswitchd"], "version"))


def running() -> bool:
    """Returns whether both daemons run. Raises NoAnswerError where one hangs."""
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
    """Have Open vSwitch run inside the context. Daemons that ran before stay; daemons started here are stopped."""
    if running():
        yield
        return
    try:
        start()
        yield
    finally:
        end(OWN_DATABASE)


def start() -> None:
    """Start both daemons with an empty database. Raises OpenVSwitchError. Call ``end`` in any case."""
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
    # A real switch has processors of its own, so this one must not wait for the hosts' work.
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
    """End the daemons that serve ``database``, whoever started them, and no others. A second call does nothing."""
    server = _daemon("ovsdb-server")
    if server is not None and str(database) not in _command_line(server):
        # Our daemons have ended, and somebody else's have taken their place.
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
    """Return the process that a daemon's pid file names; None where it is not that daemon."""
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

    ovs-vswitchd 3.1 counts its processors again 10 s after it last did so. At its start it takes the moment of boot
    for the last time. A bridge made earlier than 10 s after boot gets no thread for packets without a flow.
    """
    time.sleep(max(0.0, _COUNT_SECONDS - time.clock_gettime(time.CLOCK_MONOTONIC)))


def _call(command: list[str]) -> subprocess.CompletedProcess[str]:
    try:
        done = tools.run(command, check=False)
    except FileNotFoundError as error:
        raise OpenVSwitchError(f"{command[0]} is missing: install the package openvswitch-switch") from error
    if done.returncode == -signal.SIGALRM:
        raise NoAnswerError(f"{command[0]}: Open vSwitch runs but does not answer within {_ANSWER_SECONDS} s")
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
