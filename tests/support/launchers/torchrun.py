"""torchrun of .venv-frameworks, which scripts/setup --frameworks makes."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.paths import ROOT

PYTHON = ROOT / ".venv-frameworks" / "bin" / "python"

LABEL = {"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE": "[${role_name}${rank}]:"}
"""With this the labels of ``--tee`` have the global rank, and not the local one."""


def torchrun(ranks: int, *program: str, options: Sequence[str] = ("--standalone",)) -> list[str]:
    """The command that starts so many ranks on this host. ``program`` begins with Python, which torchrun adds."""
    return [str(PYTHON), "-m", "torch.distributed.run", f"--nproc-per-node={ranks}", *options, *program[1:]]


def problem() -> str | None:
    """Returns why torchrun cannot be used here; None: it can."""
    return None if PYTHON.exists() else "no torchrun: scripts/setup --frameworks installs it"
