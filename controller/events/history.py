"""The last hour: of each job its bytes, class, progress and predicted targets, and of each port its bytes by class.

Pure: whoever takes the samples names the time. Counts that only rise become the bytes of one sample. A smaller count
than before has begun anew, so all of it is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isnan
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controller.events.blocks import Numbers
from controller.events.rings import SAMPLE_SECONDS, Rings, slot_of
from controller.model import MAX_CLASSES, Prediction

MOST_JOBS = 2048
MOST_PORTS = 1024
JOB_FIELDS = ("bytes", "service_class", "iterations_done", "metric", "t90", "t95", "target")
"""The numbers of a job. The last three are the iterations at which it is predicted to reach its targets."""
PORT_FIELDS = (*map(str, range(MAX_CLASSES)), "other")
"""The numbers of a port: bytes by class."""
_NAN = float("nan")


class JobSample(NamedTuple):
    """A job at a moment. ``sent`` are all bytes of its run so far; None: nobody counts them."""

    user: str | None
    sent: float | None
    service_class: int | None
    iterations_done: float
    metric: float | None
    predictions: tuple[Prediction, ...] = ()


class History:
    """The samples of jobs and ports. Names of ports are the caller's."""

    def __init__(self, most_jobs: int = MOST_JOBS, most_ports: int = MOST_PORTS) -> None:
        self._jobs = Rings(len(JOB_FIELDS), most_jobs)
        self._ports = Rings(len(PORT_FIELDS), most_ports)
        self._users: dict[str, str | None] = {}
        self._sent: dict[str, float] = {}
        self._port_bytes: dict[str, Mapping[int | None, int]] = {}
        self._received: tuple[int, Mapping[str, int]] = (0, {})
        self._received_bps: dict[str, float] = {}
        self.left_out = 0
        """How many jobs and ports the last sample had no room for."""

    def sample(
        self,
        time: float,
        jobs: Mapping[str, JobSample],
        ports: Mapping[str, Mapping[int | None, int]],
        received: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """Add a sample at ``time``, in seconds since the Unix epoch.

        ``ports`` has the bytes that each port has sent since it is counted, by class; None is all other traffic.
        ``received`` has those that each port has received, of which only the newest rate is kept.
        """
        slot = slot_of(time)
        if not self._jobs.takes(slot):
            return  # the bytes since the last sample are those of the next one
        for name, job in jobs.items():
            if name in self._users and self._users[name] != job.user:
                self._jobs.forget(name)  # its samples are another user's
        rows = {name: self._job_row(name, job) for name, job in jobs.items()}
        port_rows = {name: self._port_row(name, count) for name, count in ports.items()}
        self.left_out = self._jobs.write(slot, rows) + self._ports.write(slot, port_rows)
        self._take_received(slot, received)
        self._sent = {name: job.sent for name, job in jobs.items() if job.sent is not None}
        self._port_bytes = dict(ports)
        self._users = {name: jobs[name].user if name in jobs else self._users.get(name) for name in self._jobs.names()}

    @property
    def nbytes(self) -> int:
        """The bytes of all samples."""
        return self._jobs.nbytes + self._ports.nbytes

    @property
    def users(self) -> Mapping[str, str | None]:
        """The jobs that have samples, with their users."""
        return self._users

    @property
    def ports(self) -> tuple[str, ...]:
        """The ports that have samples."""
        return self._ports.names()

    def job(self, name: str, first: int, count: int, step: int) -> Numbers:
        """Returns the samples of a job, shape (steps, fields): see ``JOB_FIELDS`` and ``steps``.

        Bytes are those of the whole step; of all else the last sample counts.
        """
        values = steps(self._jobs.read(name, first, count), step)
        return np.concatenate((total(values[:, :, :1]), last(values[:, :, 1:])), axis=1)

    def port(self, name: str, first: int, count: int, step: int) -> Numbers:
        """Returns the bytes of a port in each step, shape (steps, fields): see ``PORT_FIELDS`` and ``steps``."""
        return total(steps(self._ports.read(name, first, count), step))

    def port_bps(self, name: str) -> Mapping[str, float]:
        """Returns what a port sent by class in the newest sample, in bit/s; nothing where it has none."""
        newest = self._ports.latest(name)
        if newest is None:
            return {}
        rates = 8.0 * newest / SAMPLE_SECONDS
        return {field: float(rate) for field, rate in zip(PORT_FIELDS, rates, strict=True) if np.isfinite(rate)}

    def received_bps(self, name: str) -> float | None:
        """Returns what a port received lately, in bit/s; None where it is not counted."""
        return self._received_bps.get(name)

    def _take_received(self, slot: int, received: Mapping[str, int]) -> None:
        """Note the rates since the sample before. After a clock that was set back there are none."""
        last, before = self._received
        seconds = (slot - last) * SAMPLE_SECONDS
        known = {name: _risen(before[name], count) for name, count in received.items() if name in before}
        self._received_bps = {name: 8.0 * risen / seconds for name, risen in known.items()} if seconds > 0 else {}
        self._received = slot, dict(received)

    def _job_row(self, name: str, job: JobSample) -> tuple[float, ...]:
        before = self._sent.get(name)
        sent = _NAN if job.sent is None or before is None else _risen(before, job.sent)
        at = {each.target: each.iteration for each in job.predictions}
        return (
            sent,
            _NAN if job.service_class is None else float(job.service_class),
            job.iterations_done,
            _NAN if job.metric is None else job.metric,
            at.get("t90", _NAN),
            at.get("t95", _NAN),
            at.get("target", _NAN),
        )

    def _port_row(self, name: str, count: Mapping[int | None, int]) -> tuple[float, ...]:
        before = self._port_bytes.get(name)
        if before is None:
            return (_NAN,) * len(PORT_FIELDS)
        classes = (*range(MAX_CLASSES), None)
        return tuple(_risen(before.get(each, 0), count[each]) if each in count else _NAN for each in classes)


def _risen(before: float, now: float) -> float:
    return now - before if now >= before else now


def steps(values: Numbers, step: int) -> Numbers:
    """Returns samples in groups of ``step``, shape (steps, step, fields); their number must be a multiple of it."""
    return values.reshape(-1, step, values.shape[1])


def total(groups: Numbers) -> Numbers:
    """Returns the sum of each group, shape (steps, fields); nan where a group has no number."""
    is_there = np.isfinite(groups)
    sums: Numbers = np.where(is_there, groups, 0).sum(axis=1, dtype=np.float32)
    return np.where(is_there.any(axis=1), sums, np.float32(np.nan))


def last(groups: Numbers) -> Numbers:
    """Returns the last number of each group, shape (steps, fields); nan where a group has none."""
    is_there = np.isfinite(groups)
    place: NDArray[np.int64] = groups.shape[1] - 1 - np.argmax(is_there[:, ::-1], axis=1)
    found: Numbers = np.take_along_axis(groups, place[:, None, :], axis=1)[:, 0]
    return found


def texts(values: Iterable[float]) -> str:
    """Returns numbers as a JSON array of at most 7 digits each, with null for nan."""
    return "[" + ",".join("null" if isnan(value) else f"{value:.7g}" for value in values) + "]"
