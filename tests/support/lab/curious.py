"""A policy in a folder of its own, as an installer leaves it: it says what it knows of each job."""

from __future__ import annotations

from pathlib import Path

POLICY = """
from pathlib import Path

from controller.model import Ordering
from controller.policies.base import Policy


class Curious(Policy):
    name = "curious"

    def __init__(self, record=""):
        self.record = record

    def order(self, snapshot, previous):
        known = {job.id: said(job) for job in snapshot.jobs}
        if self.record:
            with Path(self.record).open("a") as record:
                record.writelines(f"{job}: {what}\\n" for job, what in known.items())
        return Ordering(self.name, (tuple(known),), known)


def said(job):
    family = "no family" if job.family is None else f"{job.family.name}, {len(job.family.runs)} before"
    return f"{family}, target {job.target}"
"""


def install(folder: Path) -> Path:
    """Make a folder with the policy ``curious``. Its option ``record`` is a file, to which it adds what it says."""
    info = folder / "curious-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: curious\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[trainyard.policies]\ncurious = curious_policy:Curious\n")
    (folder / "curious_policy.py").write_text(POLICY)
    return folder
