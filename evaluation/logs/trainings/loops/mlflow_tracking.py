"""MLflow's files of metrics, as a training that prints nothing writes them below ``mlruns``."""

from __future__ import annotations

import mlflow

from evaluation.logs.truth import OUTPUT, Series, Truth

STEPS = 20


def main() -> None:
    """Descend on a parabola, and log the loss of each step and the accuracy of every fifth one."""
    mlflow.set_tracking_uri("file:./mlruns")
    mlflow.set_experiment("parabola")
    loss_series = Series("loss", "min", STEPS)
    accuracy_series = Series("val_accuracy", "max", STEPS)
    place = 2.0
    with mlflow.start_run():
        mlflow.log_param("lr", 0.1)
        for step in range(1, STEPS + 1):
            place -= 0.1 * place
            mlflow.log_metric("loss", place**2, step=step)
            loss_series.add(step, place**2)
            if step % 5 == 0:
                accuracy_series.add(step, 1 / (1 + place))
                mlflow.log_metric("val_accuracy", 1 / (1 + place), step=step)
    files = {
        f"mlruns/experiment/run/metrics/{name}": series
        for name, series in (("loss", loss_series), ("val_accuracy", accuracy_series))
    }
    Truth(accuracy_series, {OUTPUT: None, **files}).write()


if __name__ == "__main__":
    main()
