"""Takes an emulated network down, even after its own process was killed.

Before a lab makes anything (bridges, interfaces of the root namespace, folders, cgroups, a switch), it writes that into
a record. All its processes have the run's name in their environment. So everything can be found and removed after a
crash or ``kill -9``, and nothing else is touched. A namespace lives only as long as its processes.

    python -m topologies.teardown
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from topologies import cgroups, limits, openvswitch, tools, userspace
from topologies.errors import LabError
from topologies.signals import held_off

HOME = Path("/run/trainyard-lab")
RECORD = HOME / "record.json"
TAG = "TRAINYARD_LAB_RUN"
"""All processes of a lab have this environment variable. It holds the name of the run."""

_PATIENCE_SECONDS = 5.0


class TeardownError(RuntimeError):
    """Something in the way does not belong to a lab, or another lab runs. The message says which."""


@dataclass(frozen=True, slots=True)
class Record:
    """What one run makes outside the namespaces of its processes.

    ``database`` belongs to the Open vSwitch that the run starts; it is empty where one ran already. ``send_bytes`` is
    the machine's setting before the run (see ``topologies.userspace``), or 0 where the run does not change it.
    """

    run: str
    bridges: tuple[str, ...] = ()
    interfaces: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    cgroups: tuple[str, ...] = ()
    database: str = ""
    send_bytes: int = 0


@contextlib.contextmanager
def only_lab() -> Iterator[None]:
    """Be the only lab of this machine inside the context. Raises TeardownError where another one runs."""
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise TeardownError("another lab runs on this machine; wait for its end, or use --datapath uml") from error
        yield


def note(record: Record) -> None:
    """Write the record of what is going to be made. Raises TeardownError where one of the names exists already."""
    present = {name for _index, name in _interfaces()}
    if taken := sorted(present & {*record.bridges, *record.interfaces}):
        raise TeardownError(
            f"interface {taken[0]} exists and is not this lab's; "
            "remove it (mn -c does, for Mininet's) or use --datapath uml"
        )
    part = RECORD.with_suffix(".part")
    part.write_text(json.dumps(asdict(record)))
    part.replace(RECORD)


def recorded() -> Record | None:
    """Return the record of an earlier run that was not taken down; None where there is none. Raises TeardownError."""
    try:
        fields = json.loads(RECORD.read_text())
        return Record(
            run=fields["run"],
            bridges=tuple(fields["bridges"]),
            interfaces=tuple(fields["interfaces"]),
            folders=tuple(fields["folders"]),
            # A record of an earlier version has none of these.
            cgroups=tuple(fields.get("cgroups", ())),
            database=fields.get("database", ""),
            send_bytes=fields.get("send_bytes", 0),
        )
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TeardownError(
            f"{RECORD} cannot be read ({error}); look what is left of that run, then remove the file"
        ) from error


def clean() -> bool:
    """Take down what the record names. Call this inside ``only_lab``.

    Returns whether there was a record. Signals that end the program wait until this is done.
    """
    with held_off():
        return _clean()


def _clean() -> bool:
    record = recorded()
    if record is None:
        return False
    end_processes(record.run)
    _remove_bridges(record.bridges)
    if record.database:
        openvswitch.end(Path(record.database))
    if record.send_bytes:
        userspace.set_send_bytes(record.send_bytes)
    _remove_interfaces((*record.bridges, *record.interfaces))
    cgroups.remove(map(Path, record.cgroups))
    for folder in record.folders:
        shutil.rmtree(folder, ignore_errors=True)
    RECORD.unlink(missing_ok=True)
    return True


def processes_of(run: str) -> list[int]:
    """Return the ids of the living processes that have the run's name, without this one."""
    wanted = f"{TAG}={run}".encode()
    processes = []
    for path in Path("/proc").iterdir():
        if path.name.isdigit() and int(path.name) != os.getpid():
            with contextlib.suppress(OSError):
                if wanted in (path / "environ").read_bytes().split(b"\0"):
                    processes.append(int(path.name))
    return processes


def end_processes(run: str) -> None:
    """End all processes of a run, by SIGTERM first and by SIGKILL after a second."""
    for number, patience in ((signal.SIGTERM, 1.0), (signal.SIGKILL, _PATIENCE_SECONDS)):
        deadline = time.monotonic() + patience
        while living := processes_of(run):
            for pid in living:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)


def _interfaces() -> list[tuple[int, str]]:
    return socket.if_nameindex()


def _remove_bridges(bridges: Sequence[str]) -> None:
    """Delete the bridges and the QoS and Queue rows of their ports."""
    if not bridges or not openvswitch.database_runs():
        return
    # A switch that was killed drops a bridge's interfaces when it starts again.
    wait = () if openvswitch.switch_runs() else ("--no-wait",)
    present = set(openvswitch.vsctl("list-br").split())
    for bridge in bridges:
        if bridge in present:
            openvswitch.vsctl(*wait, "--if-exists", "del-br", bridge)
    limits.collect_rows()


def _remove_interfaces(names: Sequence[str]) -> None:
    """Delete interfaces of the root namespace, and wait until they are gone. Raises TeardownError."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    wanted = set(names)
    while present := sorted(wanted & {name for _index, name in _interfaces()}):
        lines = [f"link del dev {name}" for name in present]
        tools.run(["ip", "-force", "-batch", "-"], lines=lines, check=False)
        if time.monotonic() > deadline:
            raise TeardownError(f"interface {present[0]} cannot be removed")
        time.sleep(0.05)


def main() -> int:
    """Take down what a killed lab has left. Exit status: 0 done or nothing was left, 1 failed."""
    try:
        with only_lab():
            sys.stderr.write("teardown: done\n" if clean() else "teardown: nothing was left\n")
    except (LabError, TeardownError, openvswitch.OpenVSwitchError, PermissionError) as error:
        sys.stderr.write(f"teardown: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
