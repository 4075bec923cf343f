"""Runs a recording's command, with its output in files or on a terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

from evaluation.logs.errors import RecordingError
from evaluation.logs.recording import Streams

OUTPUTS: Mapping[Streams, tuple[str, ...]] = {
    "apart": ("stdout.log", "stderr.log"),
    "joined": ("output.log",),
    "terminal": ("terminal.log",),
}
"""The files of the output, the one that is read first."""

LIMIT_SECONDS = 600.0
ROWS, COLUMNS = 24, 100


def run(command: tuple[str, ...], streams: Streams, folder: Path, environment: Mapping[str, str]) -> None:
    """Run a command in a folder; its output is there in the files of OUTPUTS. Raises RecordingError if it fails."""
    paths = [folder / name for name in OUTPUTS[streams]]
    with _outputs(streams, paths) as (stdout, stderr):
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
        try:
            status = process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            # Some programs leave helpers running.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    if status != 0:
        how = f"did not end in {LIMIT_SECONDS:g} s" if status is None else f"failed (exit status {status})"
        said = "\n".join(path.read_text(encoding="utf-8", errors="replace")[-3000:] for path in paths)
        raise RecordingError(f"{' '.join(command)} {how}: {said}")


@contextlib.contextmanager
def _outputs(streams: Streams, paths: list[Path]) -> Iterator[tuple[int, int]]:
    if streams == "terminal":
        with _terminal(paths[0]) as terminal:
            yield terminal, terminal
        return
    # As a launcher opens them: what both write goes to the end of the file.
    opened = [os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for path in paths]
    try:
        yield opened[0], opened[-1]
    finally:
        for descriptor in opened:
            os.close(descriptor)


@contextlib.contextmanager
def _terminal(path: Path) -> Iterator[int]:
    """A terminal of ROWS and COLUMNS whose screen output goes to a file, byte by byte."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    reader = threading.Thread(target=_copy, args=(master, path))
    reader.start()
    try:
        yield slave
    finally:
        os.close(slave)
        reader.join()
        os.close(master)


def _copy(master: int, path: Path) -> None:
    # Reading fails when the last process has closed the terminal.
    with path.open("wb") as file, contextlib.suppress(OSError):
        while content := os.read(master, 65536):
            file.write(content)
