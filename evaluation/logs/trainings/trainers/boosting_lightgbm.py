"""LightGBM's ``train`` with its own lines and those of ``log_evaluation``."""

from __future__ import annotations

from typing import Any

import lightgbm

from evaluation.logs.trainings.data import CLASSES, blobs
from evaluation.logs.truth import Series, Truth

ROUNDS = 20
EVERY = 2


def main() -> None:
    """Boost for ROUNDS rounds and print each second one."""
    train = lightgbm.Dataset(*blobs(500, seed=1))
    valid = lightgbm.Dataset(*blobs(200, seed=2), reference=train)
    told: dict[str, dict[str, list[float]]] = {}
    options: dict[str, Any] = {
        "objective": "multiclass", "num_class": CLASSES, "metric": ["multi_logloss", "multi_error"], "num_threads": 1,
        "num_leaves": 7,
    }  # fmt: skip
    lightgbm.train(
        options, train, ROUNDS, valid_sets=[train, valid], valid_names=["training", "valid"],
        callbacks=[lightgbm.log_evaluation(EVERY), lightgbm.record_evaluation(told)],
    )  # fmt: skip
    run = Series("valid's multi_logloss", "min", ROUNDS)
    for number in range(EVERY, ROUNDS + 1, EVERY):
        run.add(number, told["valid"]["multi_logloss"][number - 1])
    Truth(run).write()


if __name__ == "__main__":
    main()
