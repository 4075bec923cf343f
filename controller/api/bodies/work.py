"""The kinds of request bodies, and how each is parsed: here if it is small, else in a worker process. Pure.

A worker answers in frames (see ``controller.declared.frames``). The first frame is None or the error; the others are
the parsed body.
"""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Protocol

from controller.api.bodies.parsing import parse
from controller.api.http import HttpError
from controller.declared.batch import Batch
from controller.declared.declared import Declared
from controller.declared.frames import pack, unpack
from controller.declared.parts.part import Part
from controller.pieces import Steps
from controller.wire import HostPut, HostReport, JobSpec, PartSpec, Settings, StageSpec


class Kind(Protocol):
    """A kind of body."""

    def here(self, raw: bytes) -> Any:
        """Returns a body as a value, parsed in this process. Raises HttpError."""

    def frames(self, raw: bytes) -> Iterator[bytes]:
        """Returns the same value as frames. Raises HttpError before the first frame."""

    def from_frames(self, frames: Iterator[bytes]) -> Steps[Any]:
        """Returns the value of which ``frames`` returned the frames. Yields where other green threads may run."""


class _Values:
    """A body that becomes a value of ``controller.declared``."""

    def __init__(self, model: type[Any], values: type[Any]) -> None:
        self._model = model
        self._values = values

    def here(self, raw: bytes) -> Any:
        return self._values.of(parse(raw, self._model))

    def frames(self, raw: bytes) -> Iterator[bytes]:
        frames: Iterator[bytes] = self.here(raw).frames()
        return frames

    def from_frames(self, frames: Iterator[bytes]) -> Steps[Any]:
        steps: Steps[Any] = self._values.from_frames(frames)
        return steps


class _Message:
    """A body that stays a message of plain values."""

    def __init__(self, model: type[Any]) -> None:
        self._model = model

    def here(self, raw: bytes) -> Any:
        return parse(raw, self._model)

    def frames(self, raw: bytes) -> Iterator[bytes]:
        return iter([pack(self.here(raw).model_dump(exclude_unset=True))])

    def from_frames(self, frames: Iterator[bytes]) -> Steps[Any]:
        yield
        return self._model.model_construct(**unpack(next(frames)))


class _Nested(_Message):
    """A body with messages in it. It is small, so a worker's answer is checked once more."""

    def from_frames(self, frames: Iterator[bytes]) -> Steps[Any]:
        yield
        return self._model.model_validate(unpack(next(frames)))


KINDS: dict[str, Kind] = {
    "job": _Values(JobSpec, Declared),
    "part": _Values(PartSpec, Part),
    "report": _Values(HostReport, Batch),
    "stage": _Message(StageSpec),
    "settings": _Message(Settings),
    "host": _Nested(HostPut),
}


def answer(kind: str, raw: bytes) -> Iterator[bytes]:
    """Yields a worker's answer."""
    try:
        frames = KINDS[kind].frames(raw)
    except HttpError as error:
        yield pack((int(error.status), error.detail, error.errors))
        return
    yield pack(None)
    yield from frames


def receive(kind: str, frames: Iterator[bytes]) -> Steps[Any]:
    """Returns the value in a worker's answer. Yields where other green threads may run.

    Raises the HttpError that the worker raised.
    """
    error = unpack(next(frames))
    if error is not None:
        status, detail, errors = error
        raise HttpError(HTTPStatus(status), detail, errors=errors)
    return (yield from KINDS[kind].from_frames(frames))
