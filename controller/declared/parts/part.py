"""What one host knows of a job, as a plain value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from controller.declared.frames import pack, unpack
from controller.model import Metric
from controller.pieces import Steps
from controller.wire import PartSpec
from controller.wire.base import Unit


class Part(NamedTuple):
    """The fields of ``wire.PartSpec``; ``hosts`` in no order."""

    launcher: str
    user: str | None = None
    family: str | None = None
    model: str | None = None
    metric: Metric | None = None
    target: float | None = None
    iterations: float | None = None
    unit: Unit | None = None
    world_size: int | None = None
    ranks: int | None = None
    is_first: bool = False
    hosts: frozenset[str] = frozenset()
    arrival: float | None = None

    @classmethod
    def of(cls, spec: PartSpec) -> Part:
        """Returns the values of a spec."""
        metric = None if spec.metric is None else Metric(spec.metric.name, spec.metric.direction)
        plain = {name: getattr(spec, name) for name in cls._fields if name not in ("metric", "hosts")}
        return cls(metric=metric, hosts=frozenset(spec.hosts), **plain)

    def frames(self) -> Iterator[bytes]:
        """Yields the same as bytes, in one frame: a part has at most some thousand names."""
        metric = None if self.metric is None else (self.metric.name, self.metric.direction)
        yield pack(tuple(self._replace(metric=None)))
        yield pack(metric)

    @classmethod
    def from_frames(cls, frames: Iterator[bytes]) -> Steps[Part]:
        """Returns the value of ``frames``; yields where others may go on."""
        plain = cls._make(unpack(next(frames)))
        yield
        metric = unpack(next(frames))
        return plain._replace(metric=None if metric is None else Metric(*metric))
