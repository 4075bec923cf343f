"""Numbers as people read them. Pure."""

from __future__ import annotations

from controller.wire import JobState, PredictedTarget

_STEPS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_SHOWN_FIRST = ("target", "t90", "t95")


def byte_rate(bytes_per_second: float | None) -> str:
    """Returns a rate in bytes a second, three digits; a dash for none."""
    return "-" if bytes_per_second is None else f"{_scaled(bytes_per_second)}B/s"


def bit_rate(bps: float) -> str:
    """Returns a rate in bit/s, three digits."""
    return f"{_scaled(bps)}bit/s"


def seconds(duration: float) -> str:
    """Returns a duration with the two units that count: 4.2 s, 3 min 20 s, 5 h 2 min, 3 d 4 h."""
    if duration < 10:
        return f"{max(duration, 0.0):.2g} s"
    whole = int(duration)
    for big, small, size, part in (("d", "h", 86_400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if whole >= size:
            return f"{whole // size} {big} {whole % size // part} {small}"
    return f"{whole} s"


def percent(share: float) -> str:
    """Returns a share in percent."""
    return f"{100 * share:.0f} %"


def metric(job: JobState, *, is_short: bool = False) -> str:
    """Returns the name of a job's metric and its latest value, or the value alone; a dash before it has one."""
    if job.last_metric is None:
        return "-"
    return f"{job.last_metric:.4g}" if is_short else f"{job.spec.metric.name} {job.last_metric:.4g}"


def target(job: JobState, *, is_short: bool = False) -> str:
    """Returns the first target that is predicted: its name, its value, the iteration and the 80 % interval of it.

    ``is_short``: without the value. Where none is predicted it is the value that the job declares; without one, a dash.
    """
    for name in _SHOWN_FIRST:
        predicted = job.targets.get(name)
        if predicted is not None and predicted.iteration is not None:
            value = "" if predicted.metric is None or is_short else f" {predicted.metric:.3g} at"
            return f"{name}{value} {predicted.iteration:.0f}{_interval(predicted)}"
    return "-" if job.spec.target is None else f"target {job.spec.target:.4g}"


def count(number: int, one: str, more: str = "") -> str:
    """Returns a number of things: 1 job, 2 jobs."""
    return f"{number} {one}" if number == 1 else f"{number} {more or one + 's'}"


def _interval(predicted: PredictedTarget) -> str:
    return "" if predicted.low is None or predicted.high is None else f" ({predicted.low:.0f}-{predicted.high:.0f})"


def _scaled(number: float) -> str:
    for size, prefix in _STEPS:
        if number >= 0.9995 * size:
            return f"{number / size:#.3g}".rstrip(".") + f" {prefix}"
    return f"{number:.0f} "
