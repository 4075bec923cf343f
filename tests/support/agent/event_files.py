"""Writes TensorBoard's event files, record by record."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from pathlib import Path

from host_reporter.readers.event_files.tensorboard import crc32c


def write_scalars(folder: Path, steps: Mapping[int, Mapping[str, float]], *, name: str = "1.host") -> Path:
    """Appends the scalars of each step to an event file; step n is written at 1000 + n seconds. Returns the file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"events.out.tfevents.{name}"
    with path.open("ab") as file:
        for step, scalars in steps.items():
            for tag, value in scalars.items():
                file.write(_record(_event(step, tag, value)))
    return path


def _event(step: int, tag: str, value: float) -> bytes:
    named = _bytes(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return b"\x09" + struct.pack("<d", 1000.0 + step) + b"\x10" + _varint(step) + _bytes(5, _bytes(1, named))


def _bytes(field: int, data: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    parts = bytearray()
    while number > 0x7F:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*parts, number])


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + _masked(length) + data + _masked(data)


def _masked(data: bytes) -> bytes:
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
