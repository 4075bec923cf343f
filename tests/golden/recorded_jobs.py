"""``python -m tests.golden.recorded_jobs``: record ``recording.jsonl`` again, in a minute.

It is the recording of a real controller without the events that are about the machine: its audit and its problems.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.golden import FOLDER
from tests.support.simulator.real_recording import job, record, workload

FILE = FOLDER / "recording.jsonl"
JOBS = workload(
    job("vgg", 0.0, 70, "h1", ("h2", "h3"), 2.0e6, 0.1),
    job("resnet", 6.0, 90, "h1", ("h2",), 0.9e6, 0.12),
    job("lstm", 14.0, 60, "h2", ("h3",), 1.6e6, 0.05),
)
LEFT_OUT = ("audit", "problem")


def main() -> None:
    """Record the jobs."""
    with tempfile.TemporaryDirectory() as folder:
        lines = record(JOBS, Path(folder)).splitlines(keepends=True)
    FILE.write_text("".join(line for line in lines if json.loads(line)["event"] not in LEFT_OUT))


if __name__ == "__main__":
    main()
