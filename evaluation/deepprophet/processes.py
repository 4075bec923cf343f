"""Processes that have PyTorch, one or a rank each, and the namespaces that ranks run in. It needs no PyTorch itself."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from threading import Event

from evaluation.deepprophet.namespaces import connected_namespaces
from topologies.checkout import ROOT
from topologies.errors import LabError

PATIENCE_SECONDS = 1800.0


def python() -> str:
    """Returns the Python interpreter that has PyTorch. Raises LabError."""
    own = ROOT / ".venv-frameworks" / "bin" / "python"
    if own.exists():
        return str(own)
    if find_spec("torch") is None:
        raise LabError("PyTorch is neither in .venv-frameworks nor in this environment: see docs/deepprophet.md")
    return sys.executable


def run_ranks(command: Sequence[str], workers: int, rate_bps: float | None, stop: Event) -> str:
    """Runs a worker alone, or a rank in each of ``workers`` namespaces, and returns the output of the first.

    Links have ``rate_bps`` bit/s, or 1 Gbit/s. Raises LabError, CalledProcessError.
    """
    if workers == 1:
        return run([command], stop)
    with connected_namespaces(workers, rate_bps or 1e9) as members:
        master = f"tcp://{members[0].address}:29500"
        ranks = [
            namespace.command([*command, "--rank", str(rank), "--world", str(workers), "--master", master])
            for rank, namespace in enumerate(members)
        ]
        return run(ranks, stop, {"GLOO_SOCKET_IFNAME": members[0].interface})


def run(commands: Sequence[Sequence[str]], stop: Event, variables: Mapping[str, str] | None = None) -> str:
    """Runs commands side by side to their end, and returns the output of the first. Raises LabError."""
    if stop.is_set():
        raise LabError("stopped")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), **(variables or {})}
    running = [
        subprocess.Popen(
            list(command), cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for command in commands
    ]
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        outputs = [_output(process, until, stop) for process in running]
    finally:
        for process in running:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return outputs[0]


def _output(process: subprocess.Popen[str], until: float, stop: Event) -> str:
    name = " ".join(map(str, process.args)) if isinstance(process.args, list) else str(process.args)
    while True:
        try:
            output, errors = process.communicate(timeout=1.0)
        except subprocess.TimeoutExpired:
            if stop.is_set():
                raise LabError("stopped") from None
            if time.monotonic() > until:
                raise LabError(f"{name}: it did not end within {PATIENCE_SECONDS:g} s") from None
            continue
        if process.returncode:
            lines = errors.strip().splitlines() or [f"ended with status {process.returncode}"]
            raise LabError(f"{name}: {lines[-1]}")
        return output
