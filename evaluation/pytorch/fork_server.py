"""Starts the launcher of PyTorch processes on the testbed's hosts, in the environment that has PyTorch."""

from __future__ import annotations

import os
import subprocess

from topologies import checkout, tools
from topologies.emulation import Emulation
from topologies.frameworks import interpreter

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
"""Each process computes with one thread, because the hosts share the emulator's processors."""


def launch(emulation: Emulation, module: str) -> subprocess.Popen[bytes]:
    """Start the launcher ``module``, for ``topologies.fork_server.ForkServer``. Raises LabError."""
    return emulation.popen(
        None,
        [interpreter("PyTorch"), "-m", module],
        env={**os.environ, **_ONE_THREAD},
        cwd=checkout.ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def torch_version() -> str:
    """Return the version of PyTorch in that environment. Raises LabError, subprocess.CalledProcessError."""
    command = [interpreter("PyTorch"), "-c", "import importlib.metadata as m; print(m.version('torch'))"]
    return tools.run(command).stdout.strip()
