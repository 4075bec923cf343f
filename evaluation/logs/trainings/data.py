"""Points of a few classes around centres, which every program here learns."""

from __future__ import annotations

import numpy as np

FEATURES = 16
CLASSES = 4


def blobs(count: int, *, seed: int, spread: float = 1.5) -> tuple[np.ndarray, np.ndarray]:
    """Returns ``count`` points, float32 of shape (count, FEATURES), and the class of each, int64 of shape (count,)."""
    centres = np.random.default_rng(0).normal(size=(CLASSES, FEATURES))
    generator = np.random.default_rng(seed)
    labels = generator.integers(CLASSES, size=count)
    points = centres[labels] + spread * generator.normal(size=(count, FEATURES))
    return points.astype(np.float32), labels.astype(np.int64)
