"""What the command offers and the engine carries out: data types, and the time that a prediction may take."""

from __future__ import annotations

TYPES = {"fp32": "float32", "bf16": "bfloat16"}
"""PyTorch's name of each data type that ``--dtype`` takes."""

WHOLE_SECONDS = 5.0
"""A prediction takes at most this long, unless a single measurement takes longer."""
