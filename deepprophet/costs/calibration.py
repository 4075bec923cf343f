"""What is known of a device, measured once: a table of operators, rooflines by family, what an iteration and the wire
add.

Values, and their JSON. A calibration carries where it comes from: device, threads, PyTorch, date, commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

from controller.documents.faults import described
from controller.wire import Message
from deepprophet.costs.measured import Measurement
from deepprophet.errors import InputError

FORMAT = 5
_Part = Annotated[float, Field(ge=0, le=1e12)]


class Provenance(Message):
    """Where the numbers come from. ``cores`` are those that processes may use; ``threads`` those of one worker.

    ``others_cores``: how many cores other programs used on average while operators were measured.
    """

    device: str
    kind: str
    cores: Annotated[int, Field(ge=1)]
    threads: Annotated[int, Field(ge=1)]
    torch: str
    date: str
    commit: str
    kernel: str
    quick: bool = False
    others_cores: _Part = 0.0


class Roofline(Message):
    """Seconds of an operator of a family: once, a flop, a byte, and each of ``shapes.terms``; ``low`` and ``high``:
    measured over predicted, 10-90 %. ``name``: of this operator alone; empty: of all of the family. Far inputs add
    ``far_once`` and ``far_byte`` for each byte.
    """

    family: str
    name: str = ""
    dtype: str
    once: _Part
    flop: _Part
    byte: _Part
    terms: Annotated[tuple[_Part, ...], Field(strict=False)] = ()
    far_once: _Part = 0.0
    far_byte: _Part
    low: _Part
    high: _Part
    samples: int


class Context(Message):
    """What operators take in an iteration, from what they take alone; beside ``neighbours`` other busy workers.

    ``near`` times the near cost, ``far`` times what far inputs add, by the share that is far; seconds of a byte that is
    moved, since results go to memory that is not at hand, of a byte on a new page, of a call in each phase
    (forward, backward, optimizer), of a module that is called, and of a gradient that is put in its place.
    ``low`` and ``high``: measured over predicted of whole iterations, 10-90 %.
    """

    neighbours: Annotated[int, Field(ge=0)]
    near: _Part
    far: _Part
    byte: _Part
    fresh: _Part
    calls: Annotated[tuple[_Part, _Part, _Part], Field(strict=False)]
    module: _Part = 0.0
    gradient: _Part = 0.0
    low: _Part
    high: _Part
    samples: int


class Wrapping(Message):
    """What distributed training costs a worker itself: seconds a parameter and a byte of gradient, and a bucket."""

    parameter: _Part = 0.0
    byte: _Part = 0.0


class Collective(Message):
    """The host's side of an exchange: seconds a message (a step of a ring), a byte where no link is slower, and of a
    byte the share that a core works on it.

    ``lost_byte``: seconds by which workers that compute meanwhile on all cores take longer for a byte: cores that the
    exchange needs, and memory. None: it was not measured, and is what a core works.
    """

    message: _Part
    byte: _Part
    processor_byte: _Part
    lost_byte: _Part | None = None
    low: _Part
    high: _Part


class Calibration(Message):
    """All that is known of a device. ``table``: by an operator's key, its measurement's four numbers.

    ``floor``: seconds of a call that does nothing, as single operators are called to be measured: a model's code calls
    them otherwise, and ``Context.calls`` has what that costs.
    """

    format: int = FORMAT
    provenance: Provenance
    floor: _Part = 0.0
    table: dict[str, tuple[_Part, _Part, _Part, _Part]] = Field(strict=False)
    rooflines: Annotated[tuple[Roofline, ...], Field(strict=False)]
    contexts: Annotated[tuple[Context, ...], Field(strict=False, min_length=1)]
    wrapping: Wrapping = Wrapping()
    collective: Collective | None = None

    def measured(self, key: str) -> Measurement | None:
        """An operator's measurement, if it is in the table."""
        numbers = self.table.get(key)
        return None if numbers is None else Measurement(*numbers)

    def with_table(self, more: Mapping[str, Measurement]) -> Calibration:
        """The same with more in its table."""
        added = {key: (m.near, m.far, m.low, m.high) for key, m in more.items()}
        return self.model_copy(update={"table": {**self.table, **added}})

    def without_table(self) -> Calibration:
        """The same with rooflines only."""
        return self.model_copy(update={"table": {}})


class _Format(Message):
    model_config = ConfigDict(extra="ignore")

    format: Annotated[int, Field(ge=0, le=1_000_000)]


def from_text(text: str, path: str) -> Calibration:
    """Raises InputError, with the file and the field."""
    again = "calibrate again (trainyard predict --calibrate)"

    def other(number: int) -> InputError:
        return InputError(f"{path}: format {number}; this version reads {FORMAT}; {again}")

    try:
        calibration = Calibration.model_validate_json(text)
    except ValidationError as error:
        # Another format is said to be that, not to be a wrong one of this.
        if (number := _format(text)) not in (None, FORMAT):
            raise other(number) from error
        place, reason = described(error, None, Calibration)[0]
        field = ".".join(str(part)[:60] for part in place)
        raise InputError(f"{path}: {field + ': ' if field else ''}{reason}; {again}") from error
    if calibration.format != FORMAT:
        raise other(calibration.format)
    return calibration


def _format(text: str) -> int | None:
    """What a calibration says that it is, whatever else is in it."""
    try:
        return _Format.model_validate_json(text).format
    except ValidationError:
        return None
