"""Graphs, calibrations and networks for DeepProphet's pure parts, whose answers can be worked out by hand."""

from __future__ import annotations

from typing import Any

from deepprophet.costs.calibration import Calibration, Collective, Context, Provenance, Roofline, Wrapping
from deepprophet.graph.graph import Graph, Operator, Parameter, Phase
from deepprophet.graph.spec import Call, TensorSpec

MB = 2**20


def key(name: str = "aten.mm.default", size: int = 8, dtype: str = "float32") -> str:
    return Call(name, (TensorSpec(dtype, (size, size)), TensorSpec(dtype, (size, size))), {}).key()


def operator(
    phase: Phase = "forward", *, size: int = 8, family: str = "matmul", far: float = 0.0, **more: Any
) -> Operator:
    name = more.pop("name", "aten.mm.default")
    return Operator(
        key=key(name, size, more.pop("dtype", "float32")), family=family, phase=phase, flops=more.pop("flops", 0.0),
        bytes=more.pop("bytes", 0.0), far_share=far, **more,
    )  # fmt: skip


def graph(*gradients: int, size: int = 8, buffers: tuple[int, ...] = ()) -> Graph:
    """One operator forward, one backward for each gradient of so many bytes, one in the optimiser."""
    backward = [operator("backward", size=size) for _ in gradients]
    return Graph(
        operators=(operator(size=size), *backward, operator("optimizer", size=size)),
        parameters=tuple(Parameter(f"p{n}", size_, "float32", n + 1) for n, size_ in enumerate(gradients)),
        buffer_bytes=buffers,
        batch_size=4,
        dtype="float32",
    )


def context(**more: Any) -> Context:
    plain = {"near": 1.0, "far": 1.0, "byte": 0.0, "fresh": 0.0, "calls": (0.0, 0.0, 0.0)}
    return Context(**{"neighbours": 0, **plain, "low": 1.0, "high": 1.0, "samples": 1, **more})


def calibration(
    table: dict[str, float] | None = None,
    *,
    contexts: tuple[Context, ...] = (),
    rooflines: tuple[Roofline, ...] = (),
    collective: Collective | None = None,
    wrapping: Wrapping | None = None,
    cores: int = 2,
    kind: str = "cpu",
) -> Calibration:
    """Of a table the seconds, near and far the same."""
    return Calibration(
        provenance=Provenance(
            device="a device", kind=kind, cores=cores, threads=1, torch="2.13.0", date="2026-01-01T00:00:00Z",
            commit="abc", kernel="6.1",
        ),
        table={name: (s, s, s, s) for name, s in (table or {key(): 0.1}).items()},
        rooflines=rooflines,
        contexts=contexts or (context(),),
        collective=collective,
        wrapping=wrapping or Wrapping(),
    )  # fmt: skip


def roofline(family: str = "matmul", dtype: str = "float32", **more: float) -> Roofline:
    plain = {"once": 0.0, "flop": 0.0, "byte": 0.0, "far_byte": 0.0, "low": 0.5, "high": 2.0}
    return Roofline(**{"family": family, "dtype": dtype, **plain, "samples": 9, **more})
