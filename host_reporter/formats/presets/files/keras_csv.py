"""Keras's CSVLogger: a row for each epoch, in a file that is often called ``training.log``.

The column of epochs comes first, then the metrics in the order of the alphabet. Epochs count from 0.
"""

from __future__ import annotations

from host_reporter.formats.preset import Fields, Kind, Preset


def is_header(columns: tuple[str, ...]) -> bool:
    """Returns whether a table has the columns of CSVLogger: each ``val_NAME`` beside its NAME."""
    metrics = columns[1:]
    return (
        columns[:1] == ("epoch",)
        and "loss" in metrics
        and list(metrics) == sorted(metrics)
        and all(name.removeprefix("val_") in metrics for name in metrics)
        and not {"iteration", "iter", "global_step", "step"}.intersection(metrics)
    )


PRESET = Preset(
    name="keras-csv",
    title="Keras 2 and 3, CSVLogger",
    source="https://keras.io/api/callbacks/csv_logger/",
    kind=Kind.CSV,
    fields=Fields(needs=("epoch", "loss"), epoch="epoch"),
    columns=is_header,
)
