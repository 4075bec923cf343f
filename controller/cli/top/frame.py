"""From a picture to the lines that are shown, none of them too wide, and no more of them than fit. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from controller.cli.output import clean
from controller.cli.top import paces, words
from controller.cli.top.columns import Column, Line, Span, cut, fitted, table
from controller.cli.top.contention import Wait, cannot_meet, waits
from controller.cli.top.picture import InForce, Picture
from controller.cli.top.ports import busiest, ports_table
from controller.model import Direction
from controller.quantities import duration, percent
from controller.wire import JobState

MOST_PROBLEMS = 4
NAME = 20
"""A name of a job is cut to so many characters before other columns are made narrower."""
WIDE = 110
"""On a narrower paper texts are shorter."""
CLASS_STYLES = ("green", "cyan", "blue", "magenta", "yellow", "red", "bright_black")
"""The colour of each class. The class also stands there as a number."""
_WAYS = {Direction.EGRESS: "out", Direction.INGRESS: "in"}
_LIVE = ("waiting", "running")
_PLACES = {"switch": "switches", "host": "hosts"}
"""What earlier controllers call those who enforce."""


@dataclass(frozen=True, slots=True)
class Paper:
    """What is drawn on: its width, its height in lines (None: as many as there are), and the signs of bars."""

    width: int
    height: int | None = None
    full: str = "#"
    empty: str = "."


def paper_of(encoding: str | None, width: int, height: int) -> Paper:
    """Returns a terminal of this size. ``encoding`` is that of its text; blocks are drawn only where it has them."""
    has_blocks = (encoding or "").lower().replace("-", "") == "utf8"
    return Paper(width, height, *("█░" if has_blocks else "#."))


def frame(picture: Picture, now: float, paper: Paper, *, gone: str | None = None) -> list[Line]:
    """Returns the lines of a picture at ``now``. ``gone`` says that the controller cannot be reached, and why."""
    found = meetings(picture)
    head = [*_gone(gone), *_in_force(picture, now), *_contention(picture), *_problems(picture), *_silent(picture)]
    jobs, ports = _jobs(picture, found, paper), ports_table(busiest(picture.network), paper.width)
    if paper.height is None:
        shown = [*head, (), *jobs, *([()] if ports else []), *ports]
    else:
        left = max(paper.height - len(head) - (2 if ports else 1), 0)
        for_ports = min(len(ports), max(left - len(jobs), left // 3)) if ports else 0
        shown = [*head, (), *_cut(jobs, left - for_ports), *([()] if for_ports else []), *_cut(ports, for_ports)]
        shown = shown[: paper.height]
    return [fitted(tuple((clean(text), style) for text, style in line), paper.width) for line in shown]


def _cut(lines: Sequence[Line], most: int) -> list[Line]:
    """Returns a table's title and rows, and how many rows there are more."""
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], ((f"{len(lines) - most + 1} more", "dim"),)] if most > 0 else []


def _gone(gone: str | None) -> list[Line]:
    return [] if gone is None else [((gone, "bold red"),)]


def _in_force(picture: Picture, now: float) -> list[Line]:
    status, settings, plan = picture.status, picture.settings, picture.plan
    spans: list[Span] = []
    policy = plan.policy if plan is not None else status.policy if status is not None else None
    if policy is not None:
        spans += [("policy ", ""), (policy, "bold")]
    if settings is not None and settings.period_seconds is not None:
        spans.append((f", a plan each {settings.period_seconds:g} s", ""))
    if status is not None:
        spans += [(", ", ""), _enforced(status.paused, status.enforce)]
    first = tuple(spans)
    lines = [first] if first else []
    if plan is not None:
        lines.append(_plan(plan, now))
    elif status is not None:
        lines.append((("no plan is in force yet", "dim"),))
    return lines


def _enforced(is_paused: bool, enforce: tuple[str, ...]) -> Span:
    if is_paused:
        return "paused: nothing is enforced", "bold yellow"
    if not enforce:
        return "observing: nothing is enforced", "yellow"
    return f"enforced at {' and '.join(_PLACES.get(place, place) for place in enforce)}", "green"


def _plan(plan: InForce, now: float) -> Line:
    since = plan.since if plan.since is not None else plan.at_least
    longer = "" if plan.since is not None else "at least "
    name = "the plan is in force" if plan.epoch is None else f"plan {plan.epoch}"
    text = f"{name} for {longer}{duration(int(now - since))}"
    if plan.objective is not None and plan.bound is not None:
        served, bound = duration(plan.objective), duration(plan.bound)
        text += f"; jobs are served after {served} in the mean, no order is below {bound}"
        if plan.bound > 0:
            text += f" ({percent(plan.objective / plan.bound - 1)} above it)"
    return ((text, ""),)


def _contention(picture: Picture) -> list[Line]:
    live = [picture.loads.get(name) for name, job in picture.jobs.items() if job.state in _LIVE]
    if cannot_meet(live, picture.network):
        return [(("no two jobs send or receive at the same port: ordering cannot help here", "dim"),)]
    return []


def _problems(picture: Picture) -> list[Line]:
    if picture.status is None:
        return []
    problems = picture.status.problems
    lines: list[Line] = [(("! ", "bold red"), (problem, "red")) for problem in problems[:MOST_PROBLEMS]]
    if len(problems) > MOST_PROBLEMS:
        lines.append(((f"! {len(problems) - MOST_PROBLEMS} more problems", "red"),))
    return lines


def _silent(picture: Picture) -> list[Line]:
    if picture.status is None:
        return []
    silent = [host.name for host in picture.status.hosts if not host.alive]
    if not silent:
        return []
    return [
        ((f"{len(silent)} of {words.count(len(picture.status.hosts), 'host')} silent: {', '.join(silent)}", "red"),)
    ]


def meetings(picture: Picture) -> dict[str, Wait]:
    """Returns where each running job waits."""
    running = {name: load for name, load in picture.loads.items() if _is_running(picture.jobs.get(name))}
    return waits(_by_class(picture), running, picture.plan.ports if picture.plan is not None else {})


def _is_running(job: JobState | None) -> bool:
    return job is not None and job.state == "running"


def _by_class(picture: Picture) -> list[list[str]]:
    """Returns the jobs that are in the plan by class, and in the order of the plan where it is known."""
    order = [job for band in picture.plan.order for job in band] if picture.plan is not None else []
    place = {job: number for number, job in enumerate(order)}
    classes: dict[int, list[str]] = {}
    for job in sorted(picture.jobs, key=lambda name: (place.get(name, len(place)), name)):
        service_class = picture.jobs[job].service_class
        if service_class is not None:
            classes.setdefault(service_class, []).append(job)
    return [classes[service_class] for service_class in sorted(classes)]


def _jobs(picture: Picture, found: dict[str, Wait], paper: Paper) -> list[Line]:
    planned = [picture.jobs[name] for band in _by_class(picture) for name in band]
    others = sorted((job for job in picture.jobs.values() if job.service_class is None), key=_newest_first)
    jobs = [*planned, *others]
    if not jobs:
        return [(("no jobs", "dim"),)]
    is_short = paper.width < WIDE
    columns = [
        Column("cl", [_class(job) for job in jobs], 0, 2),
        Column("job", [(job.id, "" if job.service_class is not None else "dim") for job in jobs], 1, 10, enough=NAME),
        Column("of", [(_owner(job), "dim") for job in jobs], 9, 4),
        Column("progress", [(_progress(job, paper), "") for job in jobs], 3, 14),
        Column("pace", [(_pace(job, picture), "") for job in jobs], 8, 6, is_right=True),
        Column("metric", [(words.metric(job, is_short=is_short), "") for job in jobs], 6, 6),
        Column("target", [(words.target(job, is_short=is_short), "") for job in jobs], 7, 18),
        Column("sends", [(_sends(job, picture), "") for job in jobs], 4, 9, is_right=True),
        Column("waits for", [(_wait(job, found, is_short=is_short), "") for job in jobs], 5, 16),
    ]
    return table(columns, paper.width)


def _owner(job: JobState) -> str:
    """Returns the stage of a job, or else its user; a dash for neither."""
    return job.spec.stage or job.spec.user or "-"


def _newest_first(job: JobState) -> tuple[bool, float, str]:
    return job.state == "ended", -(job.ended_at or job.last_report or job.arrival), job.id


def _class(job: JobState) -> Span:
    if job.service_class is None:
        return "-", "dim"
    return str(job.service_class), CLASS_STYLES[job.service_class % len(CLASS_STYLES)]


def _progress(job: JobState, paper: Paper) -> str:
    if job.state != "running":
        state = "diverged" if job.diverged else job.state
        return f"{state}, {job.iterations_done:g} done" if job.iterations_done else state
    total = job.spec.iterations
    if job.diverged or total is None:
        return f"{job.iterations_done:g} done" + (", diverged" if job.diverged else "")
    share = min(job.iterations_done / total, 1.0)
    cells = 10 if paper.width >= WIDE else 6
    full = round(cells * share)
    return f"{paper.full * full}{paper.empty * (cells - full)} {percent(share)}"


def _pace(job: JobState, picture: Picture) -> str:
    if job.state != "running":
        return "-"
    return paces.in_words(picture.paces.get(job.id), paces.alone(job, picture.loads.get(job.id, {})))


def _sends(job: JobState, picture: Picture) -> str:
    return words.byte_rate(picture.sent.get(job.id) if job.service_class is not None else None)


def _wait(job: JobState, found: dict[str, Wait], *, is_short: bool) -> str:
    wait = found.get(job.id)
    if wait is None or not (wait.before or wait.shares):
        return "-"
    at = f"at {wait.port.host} {_WAYS[wait.port.direction]}"
    if not wait.before:
        return f"{wait.shares} beside {at}"
    more = f" +{len(wait.before) - 1}" if len(wait.before) > 1 else ""
    first = cut(wait.before[0], NAME) if is_short else wait.before[0]
    return f"{first}{more} {at}"
