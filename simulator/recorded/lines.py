"""Reads ``events.jsonl``: a line an event, as ``trainyard events --json`` prints them and the lab records them. Pure.

Only what the estimate needs is read. Other events, and fields of other versions, are passed over.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulator.errors import InputError

FORMAT = 'an event a line: {"id": 12, "event": "plan", "time": 1.25, "data": {...}}'
"""Errors describe the format in these words."""
_LONGEST_NAME = 63
_Positive = Annotated[float, Field(gt=0, le=1e18)]
_Count = Annotated[float, Field(ge=0, le=1e18)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class Metric(_Part):
    """The metric of a job."""

    name: str = "accuracy"
    direction: Literal["max", "min"] = "max"


class Pair(_Part):
    """The bytes that one iteration sends from one host to another."""

    src: str
    dst: str
    bytes: _Count


class Description(_Part):
    """What a job is. ``demand`` of None: it is not known."""

    arrival: float
    stage: str | None = None
    family: str | None = None
    weight: _Positive = 1.0
    metric: Metric = Metric()
    target: float | None = None
    compute_seconds: _Count = 0.0
    hosts: tuple[str, ...] | None = None
    servers: tuple[str, ...] | None = None
    demand: tuple[Pair, ...] | None = None


class Progress(_Part):
    """How far a job has got. ``last_report`` is in seconds since the Unix epoch."""

    iterations_done: _Count
    last_metric: float | None = None
    last_report: float | None = None


class Job(_Part):
    """Data of the event ``job``."""

    id: Annotated[str, Field(max_length=_LONGEST_NAME)]
    state: Literal["waiting", "running", "ended", "lost", "removed"]
    progress: Progress | None = None
    description: Description | None = None


class Plan(_Part):
    """Data of the event ``plan``."""

    policy: str


class Settings(_Part):
    """Data of the event ``settings``."""

    policy: str | None = None
    policy_options: dict[str, Any] | None = None
    period_seconds: _Positive | None = None
    pause: bool | None = None
    classes: Annotated[int, Field(ge=1)] | None = None
    enforce: tuple[str, ...] | None = None


class Link(_Part):
    """An interface of a host that has several."""

    interface: str
    egress_bps: _Positive
    ingress_bps: _Positive


class Host(_Part):
    """Data of the event ``host``."""

    name: str
    egress_bps: _Positive | None = None
    ingress_bps: _Positive | None = None
    links: tuple[Link, ...] = ()


class Gap(_Part):
    """Data of the event ``gap``."""

    first: int
    last: int


Data = Job | Plan | Settings | Host | Gap
_KINDS: dict[str, type[Data]] = {"job": Job, "plan": Plan, "settings": Settings, "host": Host, "gap": Gap}
P = TypeVar("P", bound=_Part)


class Line(_Part):
    """An event: when it happened, in seconds of the recording's own clock, and its data; None: it is passed over."""

    time: float
    event: str
    data: Any = None


def events(text: str, source: str) -> Iterator[tuple[float, Data]]:
    """Yields the time and the data of each event that the estimate needs.

    The last line may be cut off, as that of a recording that was stopped. ``source`` is what an error calls the file.
    Raises InputError with file and line for what is no event.
    """
    lines = text.split("\n")
    for number, content in enumerate(lines, start=1):
        if not content.strip():
            continue
        try:
            document = json.loads(content)
        except (ValueError, RecursionError):
            if number == len(lines):
                return
            raise InputError(f"{source}:{number}: is no JSON; --events reads {FORMAT}") from None
        where = f"{source}:{number}"
        line = _checked(Line, document, where)
        kind = _KINDS.get(line.event)
        if kind is not None:
            yield line.time, _checked(kind, line.data, f"{where}: data")


def _checked(model: type[P], document: object, where: str) -> P:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "(line)"
        raise InputError(f"{where}: {field}: {first['msg']}; --events reads {FORMAT}") from None
