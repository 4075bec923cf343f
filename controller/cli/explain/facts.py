"""Why a job has its class, as names and values. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from controller.quantities import SLOWER, duration, pace, percent

if TYPE_CHECKING:
    from controller.wire import Explanation, FoundBy, JobAtPort, JobPace, PortWait, PredictionCheck

_NAMED = 4
"""Name at most this many other jobs at a port, or hosts; --json has more."""


def facts(answer: Explanation) -> Iterator[tuple[str, str]]:
    """Yields what is known of the job, by name."""
    yield "job", answer.job
    if answer.found is not None:
        yield from _found(answer.found)
    yield "policy", answer.policy
    yield "class", f"{answer.service_class} (band {answer.position})"
    if answer.dscp is not None:
        yield "DSCP", str(answer.dscp)
    yield "reason", answer.reason
    if answer.not_enforced is not None:
        yield "enforced", f"no: {answer.not_enforced}"
    yield "before it", ", ".join(answer.jobs_before) or "none"
    if answer.bottleneck_port is None:
        yield "bottleneck", "no demand"
    else:
        need = duration(answer.bottleneck_seconds_per_iteration)
        yield "bottleneck", f"{answer.bottleneck_port}, {need} an iteration"
    for port in answer.ports:
        yield from _waits(port)
    yield f"{answer.unit}s", f"{answer.iterations_done:g} done, {answer.iterations_left:g} left"
    if answer.target is not None:
        yield "target", f"{answer.target:.4g}"
    if answer.pace is not None:
        yield "pace", _pace(answer.pace, answer.unit)
    if answer.prediction is not None:
        yield "predicted", _predicted(answer.prediction)
    if answer.diverged:
        yield "diverged", "yes: its metric or its loss is no finite number"
    if answer.earlier_runs is not None:
        yield "family", answer.earlier_runs
    for problem in answer.problems:
        yield "problem", problem


def _found(found: FoundBy) -> Iterator[tuple[str, str]]:
    """Yields what has started a job that agents have found, and where."""
    hosts = [f"{host} (rank 0)" if host == found.first else host for host in _first_to_front(found)]
    yield "found by", f"{found.launcher} on {_few(hosts)}"
    if found.missing:
        yield "missing", f"{_few(found.missing)}: {found.launcher} names them, and no agent has told of the job there"


def _first_to_front(found: FoundBy) -> list[str]:
    return sorted(found.hosts, key=lambda host: host != found.first)


def _few(names: Sequence[str]) -> str:
    """Returns some names, and how many more there are."""
    more = [f"{len(names) - _NAMED} more"] if len(names) > _NAMED else []
    return ", ".join([*names[:_NAMED], *more])


def _waits(port: PortWait) -> Iterator[tuple[str, str]]:
    """Yields whom a job waits for at a port, and with whom it shares the port, each with how long at most."""
    if port.before:
        longest = f"{duration(port.seconds_before)} at most"
        yield "waits", f"at {port.port}, {longest}, for: {_named(port.before, port.before_count)}"
    if port.alike:
        longest = f"which delays it by {duration(port.seconds_beside)} at most"
        yield "shares", f"{port.port}, {longest}, with: {_named(port.alike, port.alike_count)}"


def _named(jobs: Sequence[JobAtPort], count: int) -> str:
    named = [f"{each.job} (class {each.service_class}) {duration(each.seconds_left)}" for each in jobs[:_NAMED]]
    more = [f"{count - len(named)} more"] if count > len(named) else []
    return ", ".join(named + more)


def _pace(measured: JobPace, unit: str) -> str:
    """Returns how fast a job trains now, and against what that is slow, as far as it is known."""
    now, alone, best = measured.now, measured.alone, measured.best
    said = f"{pace(now, unit)} now"
    if alone is not None:
        return f"{said}; alone about {pace(alone, unit)}" if now < SLOWER * alone else f"{said}, as if it were alone"
    return f"{said}; its fastest 30 s were at {pace(best, unit)}" if best is not None and now < SLOWER * best else said


def _predicted(check: PredictionCheck) -> str:
    """Returns how long an iteration was predicted to take, and how far off that was."""
    said = f"{duration(check.seconds)} an iteration (80 %: {duration(check.low)} to {duration(check.high)})"
    if check.measured is None or check.off is None:
        return f"{said}; it has not been measured yet"
    longer = "longer" if check.off >= 0 else "shorter"
    inside = "within" if check.low <= check.measured <= check.high else "outside"
    return f"{said}; it takes {duration(check.measured)}, {percent(abs(check.off))} {longer}, {inside} the interval"
