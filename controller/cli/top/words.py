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


def metric(job: JobState, *, is_short: bool = False) -> str:
    """Returns the name of a job's metric and its latest value, or the value alone; a dash before it has one."""
    if job.last_metric is None:
        return "-"
    return f"{job.last_metric:.4g}" if is_short else f"{job.spec.metric.name} {job.last_metric:.4g}"


def target(job: JobState, *, is_short: bool = False) -> str:
    """Returns the first target that is expected: its name, its value, the iteration and the 80 % interval of it.

    ``is_short``: without the value. Where all are reached it says so. Where none is predicted it is the value that the
    job declares; without one, a dash.
    """
    for name in _SHOWN_FIRST:
        predicted = job.targets.get(name)
        if predicted is not None and predicted.iteration is not None and not predicted.reached:
            value = "" if predicted.metric is None or is_short else f" {predicted.metric:.3g} at"
            return f"{name}{value} {predicted.iteration:.0f}{_interval(predicted)}"
    if reached := [name for name in _SHOWN_FIRST if name in job.targets and job.targets[name].reached]:
        return f"past {reached[-1]}"
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
