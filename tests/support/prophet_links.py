"""Links and hosts that DeepProphet's answers can be worked out by hand on."""

from __future__ import annotations

from deepprophet.costs.calibration import Collective
from deepprophet.predict import network
from deepprophet.predict.network import GOODPUT, NetworkSpec

HOST = Collective(message=0.001, byte=1e-9, processor_byte=0.0, low=1.0, high=1.0)


def even(count: int, rate: float = 8e6 / GOODPUT, latency: float = 0.0) -> NetworkSpec:
    """Links on which a megabyte (10^6 bytes) of data takes a second."""
    return network.uniform(count, rate, latency)
