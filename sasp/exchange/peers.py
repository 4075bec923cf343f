"""What the other end says in JSON, read and checked: whoever reaches a port can send anything."""

from __future__ import annotations

import json
import reprlib
from dataclasses import dataclass
from typing import Any

import torch

from sasp.core.chunks import LEAST_CHUNK_BYTES
from sasp.core.errors import SaspError
from sasp.core.scheme import Scheme
from sasp.exchange.frames import LARGEST_LAYER, VERSION, Kind

TYPES = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_LAYERS = 100_000


@dataclass(frozen=True, slots=True)
class Hello:
    """A worker's greeting, checked; ``rules.maker`` checks the optimiser's options."""

    rank: int
    token: str
    type: str
    chunk_bytes: int
    layers: tuple[int, ...]
    optimizer: object
    options: object


def read_hello(body: bytearray, workers: int, scheme: Scheme) -> Hello:
    """Raises SaspError for what is not one, or is of another job."""
    found = _read(body, Kind.HELLO)
    try:
        hello = Hello(
            rank=found["rank"], token=found["token"], type=found["type"], chunk_bytes=found["chunk_bytes"],
            layers=tuple(found["layers"]), optimizer=found["optimizer"], options=found["options"],
        )  # fmt: skip
        version, asked = found["version"], found["scheme"]
    except (KeyError, TypeError) as error:
        raise SaspError("its HELLO is not understood") from error
    if version != VERSION:
        raise SaspError(f"it speaks version {_shown(version)}; this is version {VERSION}")
    if asked != str(scheme):
        raise SaspError(f"it trains with {_shown(asked)}; this server was started with {scheme}")
    if type(hello.rank) is not int or not 0 <= hello.rank < workers:
        raise SaspError(f"its rank is {_shown(hello.rank)}; there are 0 to {workers - 1}")
    if not isinstance(hello.token, str) or not hello.token.isascii():
        raise SaspError("its token is no plain text")
    if not isinstance(hello.type, str) or hello.type not in TYPES:
        raise SaspError(f"its parameters are of type {_shown(hello.type)}; choose from {', '.join(TYPES)}")
    if type(hello.chunk_bytes) is not int or not LEAST_CHUNK_BYTES <= hello.chunk_bytes <= 2**31:
        raise SaspError(f"its chunks have {_shown(hello.chunk_bytes)} bytes; at least {LEAST_CHUNK_BYTES} make sense")
    most = LARGEST_LAYER // TYPES[hello.type].itemsize
    if not 0 < len(hello.layers) <= MOST_LAYERS or not all(type(n) is int and 0 < n <= most for n in hello.layers):
        raise SaspError(f"its layers are not understood: 1 to {MOST_LAYERS}, each of 1 to {most} numbers")
    return hello


def read_order(body: bytearray, layers: int) -> tuple[int, ...]:
    """The layers' numbers, front first. Raises SaspError for what is not an order of so many."""
    found = _read(body, Kind.ORDER)
    if not isinstance(found, list) or any(type(one) is not int for one in found):
        raise SaspError("its ORDER is not understood")
    if sorted(found) != list(range(layers)):
        raise SaspError(f"its order is not one of {layers} layers")
    return tuple(found)


def read_welcome(body: bytearray) -> int:
    """How many workers there are. Raises SaspError."""
    found = _read(body, Kind.WELCOME)
    workers = found.get("workers") if isinstance(found, dict) else None
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
