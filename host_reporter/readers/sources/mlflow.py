"""A job's progress from the metric files of an MLflow run: ``RUN/metrics/NAME`` with lines ``time value step``.

The layout is that of MLflow's file store (https://mlflow.org/docs/latest/ml/tracking/backend-stores/).
"""

from __future__ import annotations

import glob
import itertools
from pathlib import Path

from host_reporter.formats.counts.choice import MetricChoice
from host_reporter.formats.local import with_names
from host_reporter.formats.matching import Matcher
from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.outputs.interpreter import Interpreter
from host_reporter.formats.outputs.line_reader import Declared
from host_reporter.formats.preset import Pattern, Preset
from host_reporter.formats.recognition import Recognition
from host_reporter.readers.chosen import Chosen
from host_reporter.readers.log_source import Source
from host_reporter.readers.tail import Tail

MAX_FILES = 10_000
"""Look at no more files of a run than this."""

LOOK_SECONDS = 2.0
"""Look for a metric, or a newer run, at most this often."""

NAME = "mlflow"
_LINE = rf"^(?P<time>\d{{10,19}}) (?P<metric>{NUMBER}) (?P<iteration>\d++)"


class MlflowSource(Chosen[Source]):
    """Follows one metric of the newest run in a folder: the declared one, else of the validation, else a loss."""

    def __init__(self, folder: Path, declared: Declared) -> None:
        super().__init__()
        self._folder, self._declared = folder, declared
        self._run: Path | None = None
        self._seen: tuple[str, ...] = ()

    def problem(self, *, final: bool = False) -> str | None:
        """What a person should know, if anything."""
        if self._source is not None:
            return self._source.problem(final=final)
        if self._seen:
            return with_names(
                f"{self._folder}: none of its metrics is the job's: declare progress.metric and progress.direction",
                self._seen,
            )
        return f"{self._folder}: no metric of an MLflow run is there yet"

    def move(self, folder: Path) -> None:
        """Follow the runs of another folder from now on."""
        self._folder, self._looked_at = folder, float("-inf")

    def _look(self, now: float) -> None:
        if now - self._looked_at < LOOK_SECONDS:
            return
        self._looked_at = now
        try:
            run = newest_run(self._folder)
            if run is None or run == self._run:
                return
            metrics = _metrics(run)
        except OSError:
            # A folder went away meanwhile.
            return
        self._seen = tuple(metrics)
        name = MetricChoice(self._declared.wanted()).best(dict.fromkeys(metrics, 0.0))
        if name is None:
            return
        self._run = run
        self._follow(metrics[name], name)

    def _follow(self, path: Path, name: str) -> None:
        if self._source is not None:
            self._source.move(path)
            return
        pattern = Pattern(regex=_LINE, metric=name, direction=self._declared.direction)
        preset = Preset(name=NAME, title="MLflow", source="https://mlflow.org/docs/latest/", patterns=(pattern,))
        recognition = Recognition.declared(Matcher(preset))
        # Who writes into the folder may be another user than the operator who named it.
        self._source = Source(Tail(path, follow_links=False), Interpreter(recognition, self._declared))


def newest_run(folder: Path) -> Path | None:
    """Returns the run in the folder whose metrics changed last: the folder itself, or one at most two levels below."""
    if folder.is_file():
        return folder
    patterns = ("metrics", "*/metrics", "*/*/metrics")
    found = itertools.chain.from_iterable(
        itertools.islice(glob.iglob(pattern, root_dir=folder), MAX_FILES)  # noqa: PTH207 - a pattern at a time
        for pattern in patterns
    )
    dated = []
    for name in found:
        try:
            dated.append(((folder / name).stat().st_mtime, str(folder / name)))
        except OSError:
            continue
    return Path(max(dated)[1]).parent if dated else None


def is_metric_file(path: Path) -> bool:
    """Returns whether a path is of a metric's file: it lies below ``metrics`` of a folder with ``meta.yaml``."""
    folder = next((parent for parent in path.parents if parent.name == "metrics"), None)
    return folder is not None and (folder.parent / "meta.yaml").is_file()


def _metrics(run: Path) -> dict[str, Path]:
    """Returns the metric files of a run by the metrics' names. A name may have slashes."""
    if run.is_file():
        return {run.name: run}
    root = run / "metrics"
    names = itertools.islice(glob.iglob("**", root_dir=root, recursive=True), MAX_FILES)  # noqa: PTH207
    return {name: root / name for name in sorted(names) if (root / name).is_file()}
