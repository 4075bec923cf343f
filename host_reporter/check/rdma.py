"""What the drivers of RDMA devices do to the DSCP that a job's libraries ask for.

NVIDIA's MLNX_OFED can give all connections of a port one traffic class, by the file tc/PORT/traffic_class of a device.
It then says ``Global tclass=NUMBER``, and no variable of a job counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from host_reporter.check.verdict import Verdict, note
from host_reporter.options import Options

CHECK = "rdma"
ROOT = Path("/sys/class/infiniband")
_FORCED = re.compile(r"^Global tclass=(\d{1,3})$", re.MULTILINE | re.ASCII)


def check(_options: Options) -> Iterator[Verdict]:
    """Yields a note for each port whose driver takes no DSCP from a job."""
    yield from verdicts(ROOT)


def verdicts(root: Path) -> Iterator[Verdict]:
    """Yields a note for each such port of the devices in the folder ``root``."""
    for file in sorted(root.glob("*/tc/*/traffic_class")):
        try:
            forced = _FORCED.search(file.read_text(encoding="ascii", errors="replace"))
        except OSError:
            continue
        if forced is not None:
            dscp = int(forced[1]) >> 2
            text = f"{file.parts[-4]} sends all its RoCE packets with DSCP {dscp}, whatever DSCP a job has been told"
            yield note(CHECK, text, f"where jobs have DSCPs of their own (identity: dscp), remove it from {file}")
