"""The model table: what real networks exchange and compute an iteration, and how that scales to a slower testbed.

Parameters are the models' own, widely published counts, four bytes each (fp32). Compute times are of one iteration on
one GPU. Those marked ``measured`` follow from TensorFlow's published benchmark of May 2017 (images a second on a
Tesla P100, synthetic data). Those marked ``assumed`` are our assumption: a typical order of magnitude for such a GPU,
measured by nobody for this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

BYTES_PER_PARAMETER = 4
CLUSTER_BPS = 10e9
"""The table is of a cluster whose links have this rate in bit/s."""

_KERAS = "Keras Applications, table of models"
_P100 = "tensorflow.org, performance benchmarks, May 2017, P100: {} images/s"
_OURS = "our assumption for a GPU of that class"


@dataclass(frozen=True, slots=True)
class Model:
    """A network: parameters, and seconds of compute an iteration on one GPU at ``batch`` samples."""

    name: str
    parameters: int
    parameters_source: str
    batch: int
    compute_seconds: float
    compute_kind: Literal["measured", "assumed"]
    compute_source: str

    @property
    def bytes(self) -> int:
        """What one worker pushes, or pulls, an iteration."""
        return self.parameters * BYTES_PER_PARAMETER


@dataclass(frozen=True, slots=True)
class ScaledModel:
    """What a job of the model exchanges (bytes) and computes (seconds) an iteration on a testbed."""

    name: str
    model_bytes: int
    compute_seconds: float


def _measured(name: str, parameters: int, source: str, batch: int, images_a_second: float) -> Model:
    seconds = round(batch / images_a_second, 3)
    return Model(name, parameters, source, batch, seconds, "measured", _P100.format(f"{images_a_second:g}"))


def _assumed(name: str, parameters: int, source: str, batch: int, seconds: float) -> Model:
    return Model(name, parameters, source, batch, seconds, "assumed", _OURS)


MODELS: tuple[Model, ...] = (
    _measured("alexnet", 61_100_840, "torchvision, AlexNet", 512, 2987),
    _measured("vgg16", 138_357_544, _KERAS, 64, 154),
    _measured("resnet50", 25_636_712, _KERAS, 64, 219),
    _measured("resnet152", 60_419_944, _KERAS, 64, 91.8),
    _measured("inception-v3", 23_851_784, _KERAS, 64, 142),
    _assumed("resnet18", 11_689_512, "torchvision, ResNet-18", 64, 0.10),
    _assumed("mobilenet-v2", 3_538_984, _KERAS, 64, 0.15),
    _assumed("densenet121", 8_062_504, _KERAS, 64, 0.35),
    _assumed("bert-base", 110_000_000, "Devlin et al. 2018, arXiv:1810.04805", 32, 0.45),
    _assumed("gpt2-small", 124_000_000, "124M model of the GPT-2 release, 2019", 8, 0.60),
    _assumed("transformer-base", 65_000_000, "Vaswani et al. 2017, arXiv:1706.03762", 64, 0.30),
    _assumed("lstm-lm", 66_000_000, "large LSTM of Zaremba et al. 2014, arXiv:1409.2329", 20, 0.25),
)


def model(name: str) -> Model:
    """The entry of that name. Raises ValueError with the names that there are."""
    try:
        return next(entry for entry in MODELS if entry.name == name)
    except StopIteration:
        known = ", ".join(entry.name for entry in MODELS)
        raise ValueError(f"there is no model called {name!r}; there are {known}") from None


def scaled_bytes(model_bytes: float, link_bps: float, cluster_bps: float = CLUSTER_BPS) -> int:
    """Bytes on a testbed's link that take as long as ``model_bytes`` do on the cluster's (at least 1).

    A link of 100 Mbit/s stands for one of 10 Gbit/s: bytes shrink by the ratio of the rates and compute times stay,
    so that each transfer's seconds, and their ratio to compute, are those of the cluster. Raises ValueError.
    """
    if not (link_bps > 0 and cluster_bps > 0 and model_bytes > 0):
        raise ValueError(f"bytes and rates must be above 0, not {model_bytes}, {link_bps}, {cluster_bps}")
    return max(1, round(model_bytes * link_bps / cluster_bps))


def scaled(entry: Model, link_bps: float, cluster_bps: float = CLUSTER_BPS) -> ScaledModel:
    """One iteration of a model on a testbed whose links have ``link_bps`` (bit/s). Raises ValueError."""
    return ScaledModel(entry.name, scaled_bytes(entry.bytes, link_bps, cluster_bps), entry.compute_seconds)
