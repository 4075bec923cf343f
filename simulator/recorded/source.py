"""A recording as what is simulated: a value that any process can make the same workload from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from controller.documents import text_file
from simulator.errors import InputError
from simulator.recorded.jobs import RecordedWorkload, workload_of
from simulator.recorded.lines import FORMAT, events
from simulator.recorded.recording import Recording, recording

MOST_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording: its text, so that whoever simulates it needs no file; ``source`` is what errors call it.

    ``port_rate_bps`` is the rate of each host whose rate the recording does not have. ``computes`` are the seconds that
    an iteration of jobs computes, by job, as far as they are known.
    """

    source: str
    text: str
    port_rate_bps: float
    computes: tuple[tuple[str, float], ...] = ()


def read(path: Path, port_rate_bps: float) -> Recorded:
    """Returns the recording in a file; ``-`` is the standard input. Raises InputError."""
    try:
        text = text_file.read(path, holds=f"a recording: {FORMAT}", most_bytes=MOST_BYTES)
    except text_file.FileError as error:
        raise InputError(str(error)) from None
    return Recorded(str(path), text, port_rate_bps)


@lru_cache(maxsize=1)
def _recording(source: str, text: str) -> Recording:
    return recording(events(text, source), source)


@lru_cache(maxsize=1)
def reading(source: Recorded) -> tuple[Recording, RecordedWorkload]:
    """Returns what a recording shows, and its jobs. The last one is kept. Raises InputError where none can be used."""
    found = _recording(source.source, source.text)
    jobs = workload_of(found, source.port_rate_bps, dict(source.computes))
    if not jobs.estimated:
        why = "; ".join(f"{job}: {reason}" for job, reason in jobs.left_out.items()) or "there is none"
        raise InputError(f"{source.source}: no job of the recording can be simulated: {why}")
    return found, jobs
