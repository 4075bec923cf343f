"""What a sweep simulates: a trace or a generated workload by its name, or a recording."""

from __future__ import annotations

from simulator.recorded.source import Recorded, reading
from simulator.workloads import catalogue
from simulator.workloads.scenario import Scenario

Source = catalogue.Source | Recorded


def build(source: Source, offline: bool = False) -> Scenario:
    """Returns the workload of a source. Raises InputError.

    ``offline`` puts all arrivals at 0. Those of a recording stay.
    """
    if isinstance(source, Recorded):
        return Scenario(reading(source)[1].workload)
    return catalogue.build(source, offline)
