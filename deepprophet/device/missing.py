"""Measures operators that a calibration has not seen, those first that tell most for the time that they take. Needs
PyTorch.
"""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from deepprophet.costs import costs
from deepprophet.costs.calibration import Calibration
from deepprophet.costs.measured import Measurement
from deepprophet.device import bench
from deepprophet.device.bench import Effort
from deepprophet.device.what_to_measure import in_order, unmeasured
from deepprophet.graph.graph import Graph, Operator

SPREAD = 0.15
"""The time of a few calls may differ from that of many by this share, beside the spread of the calls themselves."""


def measure(
    graph: Graph,
    known: Calibration,
    where: torch.device,
    *,
    seconds: float,
    effort: Effort,
    fresh: dict[str, Measurement],
) -> None:
    """Measure operators that are not in the calibration's table, for at most so many seconds.

    ``fresh`` gets each as soon as it is measured, by key, so that whatever ends this has them.
    """
    until = time.perf_counter() + seconds
    calls = effort.warm + effort.least * (2 if effort.far else 1)
    for candidate in in_order(unmeasured(graph, known), calls):
        left = until - time.perf_counter()
        if left <= 0:
            break
        if candidate.takes(calls) > left:
            continue
        try:
            measurement = bench.measure(candidate.operator.key, where, effort)
        except bench.MeasurementError:
            continue
        fresh[candidate.operator.key] = (
            measurement if effort.far else _completed(measurement, candidate.operator, known)
        )


def _completed(measurement: Measurement, operator: Operator, known: Calibration) -> Measurement:
    """With what far inputs add by the roofline, and with the doubt of few calls."""
    roofline = costs.roofline_for(operator, known.rooflines)
    further = 0.0 if roofline is None else costs.far_seconds(roofline, operator)
    return replace(
        measurement,
        far=measurement.near + further,
        low=min(measurement.low, measurement.near / (1 + SPREAD)),
        high=max(measurement.high, measurement.near * (1 + SPREAD)),
    )
