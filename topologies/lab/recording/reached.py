"""Adds to a recorded arm when each job reached its targets, which no event tells: the lab knows it after the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from topologies.lab.recording.facts import FACTS
from topologies.lab.results import JobResult

Moments = dict[str, float | None]


def moments(jobs: Mapping[str, JobResult], arrivals: Mapping[str, float]) -> dict[str, Moments]:
    """Returns when each job arrived, reached t90 and t95, and ended, in seconds since the start of the experiment.

    ``arrivals`` are in the same seconds. None: the job did not get so far.
    """
    return {
        job: {
            "arrival": arrivals[job],
            **{
                name: None if seconds is None else round(arrivals[job] + seconds, 3)
                for name, seconds in (
                    ("t90", result.t90_seconds),
                    ("t95", result.t95_seconds),
                    ("end", result.jct_seconds),
                )
            },
        }
        for job, result in jobs.items()
    }


def add_reached(folder: Path, reached: Mapping[str, Moments]) -> None:
    """Add the moments to an arm's facts, as ``reached``. Raises OSError."""
    file = folder / FACTS
    facts = json.loads(file.read_text())
    file.write_text(json.dumps(facts | {"reached": reached}))
