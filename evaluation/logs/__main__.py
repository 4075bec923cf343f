"""``scripts/record-logs [NAME ...]``: runs tiny trainings with the programs themselves, and keeps what they write."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaluation.logs import environment, truth
from evaluation.logs.catalogue import RECORDINGS
from evaluation.logs.errors import RecordingError
from evaluation.logs.keep import keep
from evaluation.logs.neutral import HOME, Neutral
from evaluation.logs.recording import Recording
from evaluation.logs.run import OUTPUTS, run
from evaluation.logs.truth import OUTPUT
from topologies import checkout
from topologies.signals import exit_status

FOLDER = checkout.ROOT / "tests" / "data" / "logs" / "recorded"


def main(arguments: Sequence[str] | None = None) -> int:
    """Record the logs of training programs.

    Exit status: 0 all are recorded, 1 one could not be recorded (the others are), 2 wrong input.
    """
    programs = sorted({recording.program for recording in RECORDINGS})
    parser = argparse.ArgumentParser(prog="scripts/record-logs", description=main.__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"programs ({', '.join(programs)}), or recordings (all)"
    )
    names = parser.parse_args(arguments).names
    if unknown := sorted(set(names) - set(programs) - {recording.name for recording in RECORDINGS}):
        parser.error(f"no program or recording is called {', '.join(unknown)}")
    failed = False
    for recording in RECORDINGS:
        if names and not {recording.name, recording.program} & set(names):
            continue
        try:
            record(recording)
        except RecordingError as error:
            sys.stderr.write(f"record-logs {recording.name}: {error}\n")
            failed = True
        else:
            sys.stderr.write(f"record-logs {recording.name}: done\n")
    return 1 if failed else 0


def record(recording: Recording, folder: Path = FOLDER) -> None:
    """Make one recording, in a folder of its name. Raises RecordingError."""
    venv = environment.make(recording.program)
    with tempfile.TemporaryDirectory(prefix="record-logs-") as ran:
        told = Path(ran) / "truth.json"
        run(recording.command, recording.streams, Path(ran), _variables(recording, venv, Path(ran), told))
        if not told.is_file():
            raise RecordingError(f"{recording.name}: the training has not said what its log should be read as")
        about = _about(recording, venv, json.loads(told.read_text(encoding="utf-8")))
        keep(recording, Path(ran), folder / recording.name, _neutral(Path(ran), venv), about)


def _variables(recording: Recording, venv: Path, ran: Path, told: Path) -> dict[str, str]:
    return {
        "PATH": f"{venv / 'bin'}:{os.defpath}",
        "PYTHONPATH": str(checkout.ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(ran / ".home"),
        "USER": "user",
        "LOGNAME": "user",
        "LANG": "C.UTF-8",
        "TERM": "xterm-256color",
        "OMP_NUM_THREADS": "1",
        # What is compiled at the first run takes minutes.
        "TORCH_EXTENSIONS_DIR": str(venv / "extensions"),
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        truth.VARIABLE: str(told),
        **recording.environment,
    }


def _about(recording: Recording, venv: Path, told: dict[str, Any]) -> dict[str, Any]:
    """The contents of about.json. The output shows the series of the run where the training says nothing else."""
    run_series = {name: value for name, value in told.items() if name != "files"}
    files = {OUTPUT: run_series} | told["files"]
    names = {OUTPUT: OUTPUTS[recording.streams][0]}
    return {
        "program": recording.package,
        "version": _version(recording, venv),
        "command": shlex.join(recording.command),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "streams": recording.streams,
        **run_series,
        "files": {names.get(name, name): series for name, series in files.items() if series is not None},
    }


def _version(recording: Recording, venv: Path) -> str:
    code = f"import importlib.metadata; print(importlib.metadata.version({recording.package!r}))"
    command = recording.version or (str(venv / "bin" / "python"), "-c", code)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"\d+\.\d\S*", done.stdout)
    if done.returncode != 0 or found is None:
        raise RecordingError(f"the version of {recording.package} is not known: {done.stderr.strip()[-300:]}")
    return found[0]


def _neutral(ran: Path, venv: Path) -> Neutral:
    base = venv / "pyvenv.cfg"
    home = next(line.partition("=")[2].strip() for line in base.read_text().splitlines() if line.startswith("home"))
    paths = {
        str(ran): f"{HOME}/run",
        str(venv): f"{HOME}/venv",
        str(checkout.ROOT): f"{HOME}/trainyard",
        str(Path(home).parent): "/usr",
    }
    return Neutral(paths, socket.gethostname(), _addresses())


def _addresses() -> list[str]:
    """The addresses of this machine, less loopback."""
    done = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False)
    return done.stdout.split()


if __name__ == "__main__":
    sys.exit(exit_status(main))
