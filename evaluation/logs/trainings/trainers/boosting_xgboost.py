"""XGBoost's ``train``, whose lines have a round and the metrics of each data set."""

from __future__ import annotations

import xgboost

from evaluation.logs.trainings.data import CLASSES, blobs
from evaluation.logs.truth import Series, Truth

ROUNDS = 20


def main() -> None:
    """Boost for ROUNDS rounds and print each."""
    train = xgboost.DMatrix(*blobs(500, seed=1))
    valid = xgboost.DMatrix(*blobs(200, seed=2))
    told: dict[str, dict[str, list[float]]] = {}
    options = {"objective": "multi:softprob", "num_class": CLASSES, "max_depth": 3, "nthread": 1}
    xgboost.train(
        options, train, ROUNDS, evals=[(train, "train"), (valid, "eval")], evals_result=told, verbose_eval=True
    )
    run = Series("eval-mlogloss", "min", ROUNDS)
    for number, loss in enumerate(told["eval"]["mlogloss"], start=1):
        run.add(number, loss)
    Truth(run).write()


if __name__ == "__main__":
    main()
