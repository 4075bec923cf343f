"""The device that predictions are made for: its name, and the threads of one worker on it. Needs PyTorch."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import time
from pathlib import Path

import torch

from deepprophet.costs.calibration import Provenance
from deepprophet.errors import InputError


def pick(name: str) -> torch.device:
    """A device by its name. Raises InputError where there is none."""
    if name == "cpu":
        return torch.device("cpu")
    if name.startswith("cuda"):
        if not torch.cuda.is_available():
            raise InputError(f"--device {name}: this PyTorch sees no GPU here; cpu is there")
        try:
            device = torch.device(name)
            torch.cuda.get_device_name(device)
        except (RuntimeError, AssertionError) as error:
            raise InputError(f"--device {name}: {str(error).splitlines()[0]}") from error
        return device
    raise InputError(f"--device {name}: it must be cpu or cuda (cuda:1)")


def describe(device: torch.device) -> str:
    """What the device is called by who made it."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    except OSError:
        pass
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def provenance(device: torch.device, threads: int, *, quick: bool) -> Provenance:
    """Where numbers that are measured now come from."""
    return Provenance(
        device=describe(device),
        kind=device.type,
        cores=cores(),
        threads=threads,
        torch=torch.__version__,
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        commit=_commit(),
        kernel=platform.release(),
        quick=quick,
    )


def identity(about: Provenance) -> dict[str, object]:
    """All that must be the same for measurements to be gone on from: the machine, what measures, and what is asked."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for name in sorted(package.rglob("*.py")):
        digest.update(name.read_bytes())
    facts = about.model_dump(exclude={"date", "commit", "others_cores"})
    return {**facts, "host": platform.node(), "measured by": digest.hexdigest()[:16]}


def _commit() -> str:
    """The commit of this checkout, with "+" where files differ from it; "unknown" outside a checkout."""
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"],
            cwd=Path(__file__).parent, capture_output=True, text=True, check=True, timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return described.stdout.strip() or "unknown"
