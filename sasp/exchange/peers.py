"""Reads and checks the JSON of the other end, because whoever reaches a port can send anything."""

from __future__ import annotations

import json
import reprlib
from dataclasses import dataclass
from typing import Any

import torch

from sasp.core.chunks import MIN_CHUNK_BYTES
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme
from sasp.core.staleness import PLAIN, StalenessOptions, from_json
from sasp.exchange.frames import MAX_LAYER_BYTES, VERSION, Kind

TYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
MAX_LAYERS = 100_000


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker's greeting, checked; ``rules.optimizer_factory`` checks the optimiser's options."""

    rank: int
    token: str
    type: str
    chunk_bytes: int
    layers: tuple[int, ...]
    optimizer: object
    options: object
    late: StalenessOptions


def read_hello(body: bytearray, workers: int, scheme: Scheme) -> Hello:
    """Return the greeting. Raises SaspError for anything else, and for a greeting of another job."""
    content = _read(body, Kind.HELLO)
    try:
        hello = Hello(
            rank=content["rank"], token=content["token"], type=content["type"], chunk_bytes=content["chunk_bytes"],
            layers=tuple(content["layers"]), optimizer=content["optimizer"], options=content["options"],
            late=from_json(content["late"]) if content["version"] == VERSION else PLAIN,
        )  # fmt: skip
        version, wanted = content["version"], content["scheme"]
    except (KeyError, TypeError) as error:
        raise SaspError("its HELLO is not understood") from error
    if version != VERSION:
        raise SaspError(f"it speaks version {_shown(version)}; this is version {VERSION}")
    if wanted != str(scheme):
        raise SaspError(f"it trains with {_shown(wanted)}; this server was started with {scheme}")
    if type(hello.rank) is not int or not 0 <= hello.rank < workers:
        raise SaspError(f"its rank is {_shown(hello.rank)}; there are 0 to {workers - 1}")
    if not isinstance(hello.token, str) or not hello.token.isascii():
        raise SaspError("its token is no plain text")
    if not isinstance(hello.type, str) or hello.type not in TYPES:
        raise SaspError(f"its parameters are of type {_shown(hello.type)}; choose from {', '.join(TYPES)}")
    if type(hello.chunk_bytes) is not int or not MIN_CHUNK_BYTES <= hello.chunk_bytes <= 2**31:
        raise SaspError(f"its chunks have {_shown(hello.chunk_bytes)} bytes; at least {MIN_CHUNK_BYTES} make sense")
    most = MAX_LAYER_BYTES // TYPES[hello.type].itemsize
    if not 0 < len(hello.layers) <= MAX_LAYERS or not all(type(n) is int and 0 < n <= most for n in hello.layers):
        raise SaspError(f"its layers are not understood: 1 to {MAX_LAYERS}, each of 1 to {most} numbers")
    return hello


def read_order(body: bytearray, layers: int) -> tuple[int, ...]:
    """Return the layers' numbers, front first. Raises SaspError for what is no order of so many layers."""
    order = _read(body, Kind.ORDER)
    if not isinstance(order, list) or any(type(number) is not int for number in order):
        raise SaspError("its ORDER is not understood")
    if sorted(order) != list(range(layers)):
        raise SaspError(f"its order is not one of {layers} layers")
    return tuple(order)


def read_welcome(body: bytearray) -> int:
    """Return the number of workers. Raises SaspError for what is no WELCOME."""
    content = _read(body, Kind.WELCOME)
    workers = content.get("workers") if isinstance(content, dict) else None
    if type(workers) is not int or workers < 1:
        raise SaspError("its WELCOME is not understood")
    return workers


def _read(body: bytearray, kind: Kind) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise SaspError(f"its {kind.name} is not understood") from error


def _shown(value: object) -> str:
    """In a line for people, however long or deep it is."""
    return reprlib.repr(value)
