"""What is made of the bodies of requests: in this process where they are small, else in a worker's. Pure.

A worker answers in frames (see ``controller.declared.frames``): the first says whether the body was taken, or which
error it is; the others are what it was made into.
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
from controller.pieces import Steps
from controller.wire import HostReport, JobSpec, Settings, StageSpec


class Kind(Protocol):
    """A kind of body."""

    def here(self, raw: bytes) -> Any:
        """What is made of a body. Raises HttpError."""

    def frames(self, raw: bytes) -> Iterator[bytes]:
        """The same as frames. Raises HttpError before the first."""

    def from_frames(self, frames: Iterator[bytes]) -> Steps[Any]:
        """What ``frames`` has made; yields where others may go on."""


class _Values:
    """A body that becomes values of the controller's own."""

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


KINDS: dict[str, Kind] = {
    "job": _Values(JobSpec, Declared),
    "report": _Values(HostReport, Batch),
    "stage": _Message(StageSpec),
    "settings": _Message(Settings),
}


def answer(kind: str, raw: bytes) -> Iterator[bytes]:
    """A worker's answer."""
    try:
        frames = KINDS[kind].frames(raw)
    except HttpError as error:
        yield pack((int(error.status), error.detail, error.errors))
        return
    yield pack(None)
    yield from frames


def take(kind: str, frames: Iterator[bytes]) -> Steps[Any]:
    """What a worker's answer says; yields where others may go on. Raises HttpError as it was raised there."""
    error = unpack(next(frames))
    if error is not None:
        status, detail, errors = error
        raise HttpError(HTTPStatus(status), detail, errors=errors)
    return (yield from KINDS[kind].from_frames(frames))
