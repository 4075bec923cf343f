"""A device that is not at hand, by the numbers of its data sheet: a calibration without measurements. From YAML.

[ours] Products of matrices and convolutions reach a share of the peak, all else a share of the memory's rate, and each
call costs the same. What a kernel really reaches depends on its shapes, so the interval is a factor either way.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from controller.wire import Label, Message
from deepprophet.choices import TYPES
from deepprophet.costs import values_file
from deepprophet.costs.calibration import Calibration, Context, Provenance, Roofline
from deepprophet.costs.costs import UNSEEN
from deepprophet.errors import InputError
from deepprophet.graph.families import FAMILIES

NOT_MEASURED = "sheet"
"""A calibration from a sheet has this for its date, commit and kernel."""

PRODUCTS = ("matmul", "grouped-matmul", "attention", "recurrent")
"""Families that compute more than they move, beside the convolutions."""

_Rate = Annotated[float, Field(gt=0, le=1e18)]
_Share = Annotated[float, Field(gt=0, le=1)]


class DeviceSheet(Message):
    """The whole file. ``flops_per_second``: the peak by data type. The shares are what kernels reach on average.

    ``call_seconds``: the fixed cost of an operator. ``factor``: the interval is from a prediction divided by it to one
    multiplied by it.
    """

    name: Label
    kind: Literal["cpu", "cuda"] = "cuda"
    cores: Annotated[int, Field(ge=1, le=65_536)] = 1
    flops_per_second: dict[Literal["fp32", "bf16"], _Rate] = Field(min_length=1)
    memory_bytes_per_second: _Rate
    call_seconds: Annotated[float, Field(ge=0, le=1)] = 5e-6
    share_of_peak: _Share = 0.5
    share_of_memory: _Share = 0.75
    factor: Annotated[float, Field(ge=1, le=100)] = UNSEEN

    def calibration(self, threads: int, torch: str) -> Calibration:
        """What a prediction needs to know of a device, for workers of so many threads and a version of PyTorch."""
        return Calibration(
            provenance=Provenance(
                device=self.name, kind=self.kind, cores=self.cores, threads=threads, torch=torch, date=NOT_MEASURED,
                commit=NOT_MEASURED, kernel=NOT_MEASURED,
            ),
            table={},
            rooflines=tuple(self._roofline(family, dtype) for dtype in self.flops_per_second for family in FAMILIES),
            contexts=(
                Context(
                    neighbours=0, near=1.0, far=1.0, byte=0.0, fresh=0.0, calls=(self.call_seconds,) * 3,
                    low=1.0 / self.factor, high=self.factor, samples=0,
                ),
            ),
        )  # fmt: skip

    def _roofline(self, family: str, dtype: Literal["fp32", "bf16"]) -> Roofline:
        computes = family in PRODUCTS or family.startswith("conv")
        flop = 1.0 / (self.share_of_peak * self.flops_per_second[dtype]) if computes else 0.0
        byte = 0.0 if family == "view" else 1.0 / (self.share_of_memory * self.memory_bytes_per_second)
        return Roofline(
            family=family, dtype=TYPES[dtype], once=0.0, flop=flop, byte=byte, far_byte=0.0, low=1.0 / self.factor,
            high=self.factor, samples=0,
        )  # fmt: skip


def read(path: Path, dtypes: Iterable[str]) -> DeviceSheet:
    """A sheet for predictions of these data types, YAML or JSON. Raises InputError, with the line and the field."""
    holds = "a device: name, flops_per_second and memory_bytes_per_second, at least"
    told = values_file.read(path, DeviceSheet, holds)
    for dtype in dtypes:
        if dtype not in told.flops_per_second:
            there = ",".join(told.flops_per_second)
            raise InputError(
                f"{path}: flops_per_second has no {dtype}; give its peak there, or ask for --dtype {there}"
            )
    return told
