"""The data sets of the recorded curves: those of scikit-learn, and harder tasks from the same samples.

Each entry of ``DATA_SETS`` takes a seed and returns (features, labels): float array (samples, features) and integer
array (samples,).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets

Array = NDArray[Any]
Data = tuple[Array, Array]


def digits(_seed: int) -> Data:
    """Returns handwritten digits: 64 pixels in 0..1, 10 classes."""
    data = datasets.load_digits()
    return data.data / 16.0, data.target


def digits_few_pixels(seed: int) -> Data:
    """Returns 16 pixels of the digits, chosen at random."""
    features, labels = digits(seed)
    return features[:, np.random.default_rng(seed).choice(64, size=16, replace=False)], labels


def digits_projected(seed: int) -> Data:
    """Returns 12 random projections of the digits."""
    features, labels = digits(seed)
    return features @ np.random.default_rng(seed).normal(size=(64, 12)) / 4.0, labels


def digits_parity(seed: int) -> Data:
    """Returns the digits, labelled by whether the digit is odd."""
    features, labels = digits(seed)
    return features, labels % 2


def digits_rotation(seed: int) -> Data:
    """Returns rotated digits, labelled by the number of quarter turns: 4 classes."""
    features, _ = digits(seed)
    turns = np.random.default_rng(seed).integers(0, 4, size=len(features))
    images = features.reshape(-1, 8, 8)
    rotated = np.stack([np.rot90(image, turn).ravel() for image, turn in zip(images, turns, strict=True)])
    return rotated, turns


def digits_same(seed: int) -> Data:
    """Returns 6,000 pairs of images, labelled by whether both show the same digit.

    Half of the pairs do. No linear classifier can decide it.
    """
    features, labels = digits(seed)
    rng = np.random.default_rng(seed)
    first = rng.integers(0, len(labels), size=6000)
    second = rng.integers(0, len(labels), size=6000)
    for i in np.flatnonzero(rng.random(6000) < 0.5):
        second[i] = rng.choice(np.flatnonzero(labels == labels[first[i]]))
    return np.hstack([features[first], features[second]]), (labels[first] == labels[second]).astype(int)


def digits_greater(seed: int) -> Data:
    """Returns 6,000 pairs of images, labelled by whether the first digit is the greater one."""
    features, labels = digits(seed)
    rng = np.random.default_rng(seed)
    first, second = rng.integers(0, len(labels), size=(2, 6000))
    return np.hstack([features[first], features[second]]), (labels[first] > labels[second]).astype(int)


def cancer(_seed: int) -> Data:
    """Returns breast cancer data: 30 standardised features, 2 classes."""
    data = datasets.load_breast_cancer()
    return _standardised(data.data), data.target


def cancer_few_features(seed: int) -> Data:
    """Returns 4 features of the breast cancer data, chosen at random."""
    features, labels = cancer(seed)
    return features[:, np.random.default_rng(seed).choice(30, size=4, replace=False)], labels


def cancer_among_noise(seed: int) -> Data:
    """Returns the 30 features of the breast cancer data, with 120 random features added."""
    features, labels = cancer(seed)
    return np.hstack([features, np.random.default_rng(seed).normal(size=(len(labels), 120))]), labels


def wine(_seed: int) -> Data:
    """Returns wine data: 13 standardised features, 3 classes."""
    data = datasets.load_wine()
    return _standardised(data.data), data.target


def wine_among_noise(seed: int) -> Data:
    """Returns the 13 features of the wine data, with 60 random features added."""
    features, labels = wine(seed)
    return np.hstack([features, np.random.default_rng(seed).normal(size=(len(labels), 60))]), labels


def iris(_seed: int) -> Data:
    """Returns iris data: 4 standardised features, 3 classes."""
    data = datasets.load_iris()
    return _standardised(data.data), data.target


def diabetes(_seed: int) -> Data:
    """Returns diabetes data, labelled by whether the disease's progression is above the median."""
    data = datasets.load_diabetes()
    return _standardised(data.data), (data.target > np.median(data.target)).astype(int)


def _standardised(features: Array) -> Array:
    scaled: Array = (features - features.mean(axis=0)) / features.std(axis=0)
    return scaled


DATA_SETS: dict[str, Callable[[int], Data]] = {
    "digits": digits,
    "digits-few-pixels": digits_few_pixels,
    "digits-projected": digits_projected,
    "digits-parity": digits_parity,
    "digits-rotation": digits_rotation,
    "digits-same": digits_same,
    "digits-greater": digits_greater,
    "cancer": cancer,
    "cancer-few-features": cancer_few_features,
    "cancer-among-noise": cancer_among_noise,
    "wine": wine,
    "wine-among-noise": wine_among_noise,
    "iris": iris,
    "diabetes": diabetes,
}
