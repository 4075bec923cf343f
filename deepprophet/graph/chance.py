"""Whether a model's own code draws random numbers outside of PyTorch's operators, as to skip a layer."""

from __future__ import annotations

import random
import sys
from typing import Any


def drawn() -> tuple[Any, ...]:
    """Return a value that changes when Python's or NumPy's random numbers are drawn."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return (random.getstate(),)
    kind, keys, place, *rest = numpy.random.get_state()
    return random.getstate(), kind, keys.tobytes(), place, *rest
