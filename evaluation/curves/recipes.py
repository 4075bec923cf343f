"""The training recipes of the recorded curves: data set, model, settings, mini-batch, mini-batches a row, and seed.

A model is anything with ``partial_fit`` and ``predict``. The number of mini-batches a row (``every``) stands for the
work of one iteration of the job. The number of rows is not known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier

from evaluation.curves.data import Array


class Learner(Protocol):
    """A classifier that learns by mini-batches."""

    def partial_fit(self, features: Array, labels: Array, *, classes: Array) -> object:
        """Learns from one mini-batch; ``classes`` are all labels of the data set."""

    def predict(self, features: Array) -> Array:
        """Returns the predicted label of each row."""


@dataclass(frozen=True)
class Mapped:
    """A linear learner on features that a kernel approximation has mapped."""

    mapping: Any
    learner: Learner

    def partial_fit(self, features: Array, labels: Array, *, classes: Array) -> object:
        """Maps the features, and learns from them."""
        return self.learner.partial_fit(self.mapping.transform(features), labels, classes=classes)

    def predict(self, features: Array) -> Array:
        """Maps the features, and predicts their labels."""
        return self.learner.predict(self.mapping.transform(features))


@dataclass(frozen=True)
class Recipe:
    """One training run. ``settings`` describes the model by its kind and its parameters.

    ``seed`` draws the weights and the order of the samples. ``data_seed`` draws the data and their split; where it is
    None, ``seed`` draws these too.
    """

    data: str
    kind: str
    batch: int
    every: int
    seed: int
    options: tuple[tuple[str, Any], ...] = ()
    label_noise: float = 0.0
    data_seed: int | None = None

    @property
    def name(self) -> str:
        """Returns the name, which is unique among the recipes: data set, kind and seed."""
        return f"{self.data}-{self.kind}-{self.seed}"

    @property
    def settings(self) -> str:
        """Returns the model and its parameters as text, for provenance."""
        return " ".join([self.kind, *(f"{key}={value}" for key, value in self.options)])

    def build(self, train: Array, seed: int) -> Learner:
        """Returns the untrained model. Kernel approximations choose their components from the training features."""
        options = dict(self.options)
        if self.kind in _MAPPINGS:
            components, gamma = options.pop("components"), options.pop("gamma")
            mapping = _MAPPINGS[self.kind](n_components=components, gamma=gamma, random_state=seed).fit(train)
            return Mapped(mapping, SGDClassifier(random_state=seed, **options))
        if self.kind in _BAYES:
            bayes: Learner = _BAYES[self.kind](**options)
            return bayes
        learner: Learner = _GRADIENT[self.kind](random_state=seed, **options)
        return learner


_MAPPINGS = {"nystroem": Nystroem, "fourier": RBFSampler}
_BAYES = {"bernoulli": BernoulliNB, "gaussian": GaussianNB, "multinomial": MultinomialNB}
_GRADIENT = {"mlp": MLPClassifier, "linear": SGDClassifier, "perceptron": Perceptron}


# These are the options of a kind where a recipe sets no others.
USUAL: dict[str, dict[str, Any]] = {
    "mlp": {"solver": "sgd"},
    "linear": {"learning_rate": "constant"},
    "nystroem": {"loss": "log_loss", "learning_rate": "constant"},
    "fourier": {"loss": "log_loss", "learning_rate": "constant"},
}

# Each row has the data set, kind, mini-batch, mini-batches a row, share of label noise and options. Its seed is its
# position in the table, from 1.
_TABLE: tuple[tuple[str, str, int, int, float, dict[str, Any]], ...] = (
    ("digits", "mlp", 32, 1, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.1}),
    ("digits", "mlp", 32, 2, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.02}),
    ("digits", "mlp", 64, 2, 0.0, {"hidden_layer_sizes": (32,), "learning_rate_init": 0.01}),
    ("digits", "mlp", 32, 1, 0.0, {"hidden_layer_sizes": (128, 64), "learning_rate_init": 0.02}),
    (
        "digits",
        "mlp",
        32,
        3,
        0.0,
        {"hidden_layer_sizes": (32, 32, 32), "learning_rate_init": 0.01, "activation": "tanh"},
    ),
    (
        "digits",
        "mlp",
        32,
        4,
        0.0,
        {"hidden_layer_sizes": (64, 64), "learning_rate_init": 0.05, "activation": "logistic"},
    ),
    (
        "digits",
        "mlp",
        32,
        10,
        0.0,
        {"hidden_layer_sizes": (64, 64, 64), "learning_rate_init": 0.1, "activation": "logistic"},
    ),
    ("digits", "mlp", 16, 5, 0.0, {"hidden_layer_sizes": (16,), "learning_rate_init": 0.005, "momentum": 0.0}),
    ("digits", "mlp", 32, 2, 0.0, {"hidden_layer_sizes": (64,), "solver": "adam", "learning_rate_init": 0.001}),
    ("digits", "mlp", 16, 1, 0.4, {"hidden_layer_sizes": (256,), "learning_rate_init": 0.05}),
    ("digits", "mlp", 16, 3, 0.6, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.05}),
    ("digits", "mlp", 8, 4, 0.2, {"hidden_layer_sizes": (64, 32), "learning_rate_init": 0.02}),
    ("digits-few-pixels", "mlp", 32, 4, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.05}),
    ("digits-few-pixels", "mlp", 16, 8, 0.2, {"hidden_layer_sizes": (32, 32), "learning_rate_init": 0.02}),
    (
        "digits-few-pixels",
        "mlp",
        32,
        5,
        0.0,
        {"hidden_layer_sizes": (128,), "solver": "adam", "learning_rate_init": 0.002},
    ),
    ("digits-projected", "mlp", 32, 5, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.02}),
    (
        "digits-projected",
        "mlp",
        16,
        6,
        0.0,
        {"hidden_layer_sizes": (32, 32), "learning_rate_init": 0.05, "activation": "tanh"},
    ),
    ("digits-parity", "mlp", 32, 3, 0.0, {"hidden_layer_sizes": (32,), "learning_rate_init": 0.02}),
    ("digits-parity", "mlp", 16, 4, 0.3, {"hidden_layer_sizes": (64, 64), "learning_rate_init": 0.01}),
    (
        "digits-parity",
        "mlp",
        32,
        8,
        0.0,
        {"hidden_layer_sizes": (32, 32), "learning_rate_init": 0.1, "activation": "logistic"},
    ),
    ("digits-rotation", "mlp", 32, 3, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.02}),
    ("digits-rotation", "mlp", 32, 5, 0.0, {"hidden_layer_sizes": (128, 64), "learning_rate_init": 0.01}),
    (
        "digits-rotation",
        "mlp",
        32,
        8,
        0.0,
        {"hidden_layer_sizes": (64, 64), "learning_rate_init": 0.05, "activation": "logistic"},
    ),
    ("digits-rotation", "mlp", 16, 2, 0.3, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.05}),
    ("digits-same", "mlp", 32, 20, 0.0, {"hidden_layer_sizes": (128,), "learning_rate_init": 0.02}),
    ("digits-same", "mlp", 32, 30, 0.0, {"hidden_layer_sizes": (128, 64), "learning_rate_init": 0.01}),
    (
        "digits-same",
        "mlp",
        64,
        20,
        0.0,
        {"hidden_layer_sizes": (128, 64), "solver": "adam", "learning_rate_init": 0.001},
    ),
    ("digits-same", "mlp", 32, 15, 0.0, {"hidden_layer_sizes": (256,), "solver": "adam", "learning_rate_init": 0.003}),
    ("digits-greater", "mlp", 32, 15, 0.0, {"hidden_layer_sizes": (128,), "learning_rate_init": 0.02}),
    (
        "digits-greater",
        "mlp",
        32,
        15,
        0.0,
        {"hidden_layer_sizes": (64, 64), "solver": "adam", "learning_rate_init": 0.001},
    ),
    (
        "digits-greater",
        "mlp",
        32,
        40,
        0.0,
        {"hidden_layer_sizes": (64, 64), "learning_rate_init": 0.1, "activation": "logistic"},
    ),
    ("cancer", "mlp", 16, 1, 0.0, {"hidden_layer_sizes": (16,), "learning_rate_init": 0.002}),
    ("cancer-among-noise", "mlp", 16, 1, 0.0, {"hidden_layer_sizes": (32,), "learning_rate_init": 0.01}),
    ("wine", "mlp", 8, 1, 0.0, {"hidden_layer_sizes": (8,), "learning_rate_init": 0.005}),
    ("wine-among-noise", "mlp", 8, 1, 0.0, {"hidden_layer_sizes": (32,), "learning_rate_init": 0.01}),
    ("iris", "mlp", 8, 2, 0.0, {"hidden_layer_sizes": (8,), "learning_rate_init": 0.01}),
    ("iris", "mlp", 4, 3, 0.0, {"hidden_layer_sizes": (16, 16), "learning_rate_init": 0.005, "activation": "tanh"}),
    ("diabetes", "mlp", 16, 1, 0.0, {"hidden_layer_sizes": (16,), "learning_rate_init": 0.01}),
    ("digits", "linear", 16, 1, 0.0, {"loss": "log_loss", "eta0": 0.001}),
    ("digits", "linear", 32, 3, 0.0, {"loss": "log_loss", "eta0": 0.0003}),
    ("digits", "linear", 8, 1, 0.0, {"loss": "hinge", "eta0": 0.001}),
    ("digits", "linear", 8, 1, 0.0, {"loss": "modified_huber", "eta0": 0.01}),
    ("digits", "linear", 8, 2, 0.0, {"loss": "log_loss", "learning_rate": "optimal", "eta0": 0.01}),
    ("digits", "linear", 16, 3, 0.4, {"loss": "log_loss", "eta0": 0.003}),
    ("digits", "linear", 16, 4, 0.5, {"loss": "hinge", "eta0": 0.0005}),
    ("digits-few-pixels", "linear", 16, 4, 0.0, {"loss": "log_loss", "eta0": 0.01}),
    ("digits-projected", "linear", 16, 3, 0.0, {"loss": "log_loss", "eta0": 0.003}),
    ("digits-projected", "linear", 8, 2, 0.0, {"loss": "hinge", "eta0": 0.01}),
    ("digits-rotation", "linear", 16, 3, 0.0, {"loss": "log_loss", "eta0": 0.003}),
    ("digits-rotation", "linear", 16, 2, 0.0, {"loss": "modified_huber", "eta0": 0.003}),
    ("digits-parity", "linear", 32, 4, 0.0, {"loss": "log_loss", "eta0": 0.003}),
    ("digits-greater", "linear", 16, 6, 0.0, {"loss": "log_loss", "eta0": 0.0005}),
    ("cancer-among-noise", "linear", 8, 1, 0.0, {"loss": "log_loss", "eta0": 0.0005}),
    ("cancer-few-features", "linear", 8, 1, 0.0, {"loss": "hinge", "eta0": 0.001}),
    ("wine-among-noise", "linear", 4, 1, 0.0, {"loss": "hinge", "eta0": 0.001}),
    ("diabetes", "linear", 8, 1, 0.0, {"loss": "log_loss", "eta0": 0.0005}),
    ("digits", "perceptron", 4, 1, 0.0, {}),
    ("digits", "perceptron", 8, 2, 0.2, {}),
    ("digits-rotation", "perceptron", 16, 2, 0.0, {}),
    ("digits", "linear", 4, 1, 0.0, {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 1.0}),
    (
        "digits-few-pixels",
        "linear",
        4,
        2,
        0.0,
        {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 0.01},
    ),
    ("digits-rotation", "linear", 8, 1, 0.0, {"loss": "hinge", "penalty": None, "learning_rate": "pa1", "eta0": 0.01}),
    ("digits", "bernoulli", 4, 1, 0.0, {"binarize": 0.5}),
    ("digits", "bernoulli", 8, 1, 0.4, {"binarize": 0.5}),
    ("digits-rotation", "bernoulli", 8, 1, 0.0, {"binarize": 0.5}),
    ("digits", "multinomial", 4, 1, 0.0, {}),
    ("digits-rotation", "multinomial", 8, 1, 0.0, {}),
    ("digits-projected", "gaussian", 8, 1, 0.0, {}),
    ("digits-few-pixels", "gaussian", 8, 1, 0.0, {}),
    ("digits", "nystroem", 16, 2, 0.0, {"components": 200, "gamma": 0.3, "eta0": 0.01}),
    ("digits-rotation", "nystroem", 16, 4, 0.0, {"components": 300, "gamma": 0.3, "eta0": 0.01}),
    ("digits-parity", "nystroem", 16, 5, 0.0, {"components": 200, "gamma": 0.3, "eta0": 0.02}),
    ("digits-greater", "nystroem", 16, 15, 0.0, {"components": 400, "gamma": 0.1, "eta0": 0.02}),
    ("digits-projected", "nystroem", 16, 5, 0.2, {"components": 200, "gamma": 0.5, "eta0": 0.01}),
    ("digits", "fourier", 16, 2, 0.0, {"components": 500, "gamma": 0.1, "eta0": 0.005}),
    ("digits-rotation", "fourier", 16, 4, 0.0, {"components": 800, "gamma": 0.1, "eta0": 0.003}),
    ("digits-parity", "fourier", 8, 6, 0.2, {"components": 500, "gamma": 0.2, "eta0": 0.01}),
    ("cancer", "fourier", 4, 1, 0.0, {"components": 200, "gamma": 0.02, "eta0": 0.005}),
    (
        "digits",
        "mlp",
        32,
        12,
        0.0,
        {"hidden_layer_sizes": (64, 64), "learning_rate_init": 0.2, "activation": "logistic"},
    ),
    (
        "digits",
        "mlp",
        32,
        40,
        0.0,
        {"hidden_layer_sizes": (64, 64, 64), "learning_rate_init": 0.3, "activation": "logistic"},
    ),
    (
        "digits",
        "mlp",
        32,
        2,
        0.0,
        {"hidden_layer_sizes": (64, 64), "solver": "adam", "learning_rate_init": 0.003, "activation": "logistic"},
    ),
    (
        "digits",
        "mlp",
        32,
        4,
        0.2,
        {"hidden_layer_sizes": (64, 64, 64), "solver": "adam", "learning_rate_init": 0.003, "activation": "logistic"},
    ),
    (
        "digits-rotation",
        "mlp",
        32,
        4,
        0.0,
        {"hidden_layer_sizes": (64, 64), "solver": "adam", "learning_rate_init": 0.002, "activation": "logistic"},
    ),
    (
        "digits-same",
        "mlp",
        32,
        25,
        0.0,
        {"hidden_layer_sizes": (128,), "learning_rate_init": 0.05, "activation": "tanh"},
    ),
    (
        "digits-same",
        "mlp",
        32,
        10,
        0.0,
        {"hidden_layer_sizes": (128,), "solver": "adam", "learning_rate_init": 0.003, "activation": "logistic"},
    ),
    (
        "digits-greater",
        "mlp",
        16,
        12,
        0.0,
        {"hidden_layer_sizes": (32, 32), "solver": "adam", "learning_rate_init": 0.0005, "activation": "tanh"},
    ),
    ("digits-rotation", "mlp", 32, 12, 0.0, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.02}),
    ("digits-rotation", "mlp", 16, 10, 0.3, {"hidden_layer_sizes": (64,), "learning_rate_init": 0.05}),
)

RECIPES = tuple(
    Recipe(data, kind, batch, every, seed, tuple((USUAL.get(kind, {}) | options).items()), noise)
    for seed, (data, kind, batch, every, noise, options) in enumerate(_TABLE, start=1)
)
