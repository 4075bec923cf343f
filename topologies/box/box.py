"""A User-Mode Linux box: Debian's ``linux.uml`` as a process, with Open vSwitch's kernel datapath inside.

A box needs no privilege and no KVM. It sees the machine's files and writes to them. It has its own processes and its
own network, without a link to the outside; its clock is the machine's. ``run`` starts one command in a box, and passes
on its output and exit status. Several boxes can run side by side. A box ends when its caller ends, even if that is
killed.

    python -m topologies.box.box [--memory 2G] [--] COMMAND...
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.box.box_init import BUILT_IN_ELSEWHERE, INIT, MODULES
from topologies.box.processors import own_processor, run_on
from topologies.signals import ending_signals, held_off

KERNEL = "linux.uml"
MODULE_TREE = Path("/usr/lib/uml/modules")
OWN_FOLDERS = ("/run", "/var/run", "/var/log", "/dev", "/proc", "/sys")
"""The box has its own versions of these folders, and does not see the machine's."""

_STOP_SECONDS = 5.0
_AT_MINSIGSTKSZ = 51
_KNOWN_STATE_BYTES = 2696
_COMMAND = """#!/bin/sh
cd {directory} || exit 126
exec env -i {environment} {command}
"""


Output = Callable[[int, bytes], None]
"""A function of a stream's number (1: stdout, 2: stderr) and of a piece that the command wrote there."""


class BoxError(RuntimeError):
    """The box could not start, or ended without an exit status. The message is one line for people."""


class BoxTimeoutError(BoxError):
    """The box was stopped because its command did not end in time."""


class BoxStoppedError(BoxError):
    """The box was stopped because its caller set ``stop``."""


def run(
    command: Sequence[str],
    *,
    memory: str = "2G",
    timeout: float | None = None,
    env: Mapping[str, str] | None = None,
    output: Output | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Run ``command`` in a box of its own, in the caller's working directory. Returns the command's exit status.

    ``memory`` is a size such as ``512M`` or ``2G``, ``timeout`` is in seconds, and ``env`` replaces the caller's
    environment. Output goes to the caller's stdout and stderr, or to ``output``, as soon as the command writes it.
    Raises BoxError where the box cannot start or dies, BoxTimeoutError after the timeout, and BoxStoppedError once
    ``stop`` is set. SIGINT, SIGTERM and SIGHUP of the caller stop the box first. Outside the main thread only ``stop``
    does.
    """
    _check(command, memory)
    folder = Path(tempfile.mkdtemp(prefix="trainyard-box-", dir=_scratch()))
    try:
        _prepare(folder, command, dict(os.environ if env is None else env), terminals=output is None)
        with ending_signals(), own_processor() as processor:
            return _boot(folder, memory, _Limits.from_now(timeout, stop), output or write_through, processor)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def available() -> str | None:
    """Returns in one line why no box can be started here; None where that is possible."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        return "the User-Mode Linux box needs Linux on x86-64"
    if shutil.which(KERNEL, path=_path(os.environ)) is None or not MODULE_TREE.is_dir():
        return f"{KERNEL} is missing: install the package user-mode-linux (scripts/setup does)"
    for tool in ("modprobe", "ovs-vswitchd", "ovsdb-tool"):
        if shutil.which(tool, path=_path(os.environ)) is None:
            return f"{tool} is missing: install the packages kmod and openvswitch-switch (scripts/setup does)"
    return None


def _check(command: Sequence[str], memory: str) -> None:
    if not command:
        raise BoxError("no command to run in the box")
    if not re.fullmatch(r"[1-9][0-9]*[MG]", memory):
        raise BoxError(f"memory {memory!r} is not a size like 512M or 2G")
    if reason := available():
        raise BoxError(reason)
    here = Path.cwd()
    if any(here.is_relative_to(folder) for folder in OWN_FOLDERS):
        raise BoxError(f"the working directory {here} is not visible in the box, which has its own {here.parts[1]}")


def _scratch() -> str:
    """Returns a folder that the box sees too, whose path has no characters that a kernel command line cannot hold."""
    scratch = Path(tempfile.gettempdir()).resolve()
    hidden = any(scratch.is_relative_to(folder) for folder in OWN_FOLDERS)
    return "/tmp" if hidden or re.search(r"[\s,\"]", str(scratch)) else str(scratch)  # noqa: S108 (mkdtemp follows)


def _memory_folder(memory: str, fallback: Path) -> str:
    """Returns the folder of the box's memory, an unlinked file: in memory if there is room, else ``fallback``."""
    needed = int(memory[:-1]) * (2**30 if memory.endswith("G") else 2**20)
    with contextlib.suppress(OSError):
        shared = os.statvfs("/dev/shm")  # noqa: S108 (the kernel creates a private file there)
        if shared.f_bavail * shared.f_frsize > needed and not shared.f_flag & getattr(os, "ST_NOEXEC", 8):
            return "/dev/shm"  # noqa: S108 (as above)
    return str(fallback)


def _path(env: Mapping[str, str]) -> str:
    return env.get("PATH", "/usr/bin:/bin") + ":/usr/local/sbin:/usr/sbin:/sbin"


def _prepare(folder: Path, command: Sequence[str], env: dict[str, str], *, terminals: bool) -> None:
    """Write the init script, the command and their files into the private folder."""
    env |= {"PATH": _path(env), "TMPDIR": "/run/box/tmp", "TRAINYARD_BOX": "1"}
    (folder / "lib").mkdir()
    (folder / "lib" / "modules").symlink_to(MODULE_TREE)
    present = {path.stem for path in MODULE_TREE.glob("*/kernel/**/*.ko")}
    modules = [m for m in MODULES if m in present or m not in BUILT_IN_ELSEWHERE]
    (folder / "modules").write_text("\n".join(modules) + "\n")
    (folder / "openvswitch").touch()
    scripts = {
        "init": f"#!/bin/sh\nhere={shlex.quote(str(folder))}\n{INIT}",
        "modprobe": f'#!/bin/sh\nexec /sbin/modprobe -d {shlex.quote(str(folder))} "$@"\n',
        "command": _COMMAND.format(
            directory=shlex.quote(str(Path.cwd())),
            environment=" ".join(shlex.quote(f"{name}={value}") for name, value in env.items()),
            command=shlex.join(command),
        ),
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o700)
    if _vector_state_too_large():
        _compile(folder / "xstate.so")
    for stream in (1, 2):
        if terminals and os.isatty(stream):
            size = shutil.get_terminal_size()
            (folder / f"terminal{stream}").write_text(f"cols {size.columns} rows {size.lines}\n")


def _vector_state_too_large() -> bool:
    """Returns whether the processor's register state exceeds linux.uml's ptrace buffer of 2696 bytes (see xstate.c).

    The auxiliary vector gives the size of a signal frame, which is that state and a little less than 1 KB more.
    """
    library = ctypes.CDLL(None)
    library.getauxval.restype = ctypes.c_ulong
    library.getauxval.argtypes = [ctypes.c_ulong]
    return int(library.getauxval(_AT_MINSIGSTKSZ)) > _KNOWN_STATE_BYTES + 1024


def _compile(library: Path) -> None:
    source = Path(__file__).with_name("xstate.c")
    compiler = next((path for name in ("cc", "gcc", "tcc") if (path := shutil.which(name))), None)
    if compiler is None:
        raise BoxError(f"{KERNEL} needs {source.name} on this processor, and there is no C compiler: install gcc")
    compilation = subprocess.run(
        [compiler, "-O2", "-shared", "-fPIC", "-o", str(library), str(source)],
        capture_output=True,
        text=True,
        check=False,
    )
    if compilation.returncode != 0:
        reason = (compilation.stderr.strip().splitlines() or ["no reason given"])[0]
        raise BoxError(f"{source.name} does not compile (is libc6-dev installed?): {reason}")


@dataclass(frozen=True, slots=True)
class _Limits:
    """A box's limits: ``deadline`` (monotonic, ``seconds`` after the start), and ``stop``, which its caller may set."""

    deadline: float
    seconds: float
    stop: threading.Event | None = None

    @classmethod
    def from_now(cls, seconds: float | None, stop: threading.Event | None = None) -> _Limits:
        """Returns limits that begin now. Where ``seconds`` is None, there is no deadline."""
        duration = float("inf") if seconds is None else seconds
        return cls(time.monotonic() + duration, duration, stop)

    def check(self) -> None:
        """Raises BoxTimeoutError after the deadline, and BoxStoppedError once ``stop`` is set."""
        if self.stop is not None and self.stop.is_set():
            raise BoxStoppedError("the box was stopped")
        if time.monotonic() > self.deadline:
            raise BoxTimeoutError(f"the command did not end within {self.seconds:g} s; the box was stopped")


def _boot(folder: Path, memory: str, limits: _Limits, output: Output, processor: int | None) -> int:
    """Start the kernel and pass on its output until it ends. Returns the command's exit status."""
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    alive_read, alive_write = os.pipe()
    arguments = [
        *(KERNEL, f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw"),
        *(f"init={folder}/init", "con=null", "con0=null,fd:1", f"con1=null,fd:{out_write}"),
        *(f"con2=null,fd:{err_write}", f"con3=fd:{alive_read},null", f"uml_dir={folder}/", "umid=box", "quiet"),
    ]
    env = {"PATH": _path(os.environ), "TMPDIR": _memory_folder(memory, folder), "HOME": str(folder)}
    if (library := folder / "xstate.so").exists():
        env["LD_PRELOAD"] = str(library)
    try:
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=env,
                pass_fds=(out_write, err_write, alive_read),
                start_new_session=True,
            )
        run_on(process.pid, processor)
        for end in (out_write, err_write, alive_read):
            os.close(end)
        streams = {out_read: 1, err_read: 2}
        try:
            _pass_on(process, streams, limits, output)
        finally:
            with held_off():
                # The end of this file makes the box interrupt the command and end.
                os.close(alive_write)
                _stop(process, streams, output)
    finally:
        os.close(out_read)
        os.close(err_read)
    return _status(folder, process.returncode)


def _pass_on(process: subprocess.Popen[bytes], streams: Mapping[int, int], limits: _Limits, output: Output) -> None:
    """Pass on the data of the box's two pipes until the kernel has ended."""
    with selectors.DefaultSelector() as selector:
        for source in streams:
            os.set_blocking(source, False)
            selector.register(source, selectors.EVENT_READ)
        ended = False
        while True:
            ready = selector.select(0 if ended else 0.1)
            for key, _events in ready:
                if not _copy(key.fd, streams[key.fd], output):
                    selector.unregister(key.fd)
            if ended and not ready:
                return
            # One more round follows the end, because the pipes may still hold the last output.
            ended = process.poll() is not None
            if not ended:
                limits.check()


def _copy(source: int, stream: int, output: Output) -> bool:
    """Pass on the data that has arrived. Returns False at the end of the source."""
    try:
        data = os.read(source, 65536)
    except BlockingIOError:
        return True
    if data:
        output(stream, data)
    return bool(data)


def write_through(stream: int, data: bytes) -> None:
    """Write the command's stdout (1) or stderr (2) to our own."""
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


def _stop(process: subprocess.Popen[bytes], streams: Mapping[int, int], output: Output) -> None:
    """Let the kernel end by itself for a moment, then end its whole group."""
    try:
        with contextlib.suppress(BoxTimeoutError):
            _pass_on(process, streams, _Limits.from_now(_STOP_SECONDS), output)
    finally:
        # The box's processes are processes of this machine too, in the session that Popen has started.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _status(folder: Path, ended_with: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        return int((folder / "status").read_text())
    lines = (folder / "log").read_text(errors="replace").strip().splitlines() or ["it gave no reason"]
    reasons = [line for line in lines if line.startswith("box: ") or "panic" in line or "errno" in line]
    reason = (reasons or lines[-1:])[0].removeprefix("box: ")
    how = f"killed by {signal.Signals(-ended_with).name}" if ended_with < 0 else f"status {ended_with}"
    raise BoxError(f"the box ended early ({how}): {reason}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command in a box.

    The exit status is that of the command, 130 after Ctrl-C, 1 where the box fails, and 141 where the reader of the
    output is gone.
    """
    parser = argparse.ArgumentParser(
        prog="python -m topologies.box.box", description="Run a command in a box of its own."
    )
    parser.add_argument("--memory", default="2G", help="the memory of the box, like 512M or 2G")
    parser.add_argument("--timeout", type=float, default=None, help="stop the box after so many seconds")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND...")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    try:
        return run(command, memory=options.memory, timeout=options.timeout)
    except BoxError as error:
        sys.stderr.write(f"box: {error}\n")
        return 1
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
