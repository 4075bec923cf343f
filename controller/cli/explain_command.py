"""``trainyard explain``: why a job has its class, and what it waits for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from controller.cli.output import show_document, show_facts

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import Explanation, FoundBy, JobAtPort, PortWait

Connect = Callable[[argparse.Namespace], "Client"]
_NAMED = 4
"""Name at most this many other jobs at a port, or hosts; --json has more."""


def add_command(commands: Any, remote: argparse.ArgumentParser, connect: Connect) -> None:
    """Add the command's parser. ``connect`` returns the client that the options of ``remote`` name."""
    parser = commands.add_parser("explain", parents=[remote], help="why a job has its class, and what it waits for")
    parser.add_argument("job", metavar="JOB", help="the name of the job")
    tries = parser.add_argument_group("as it would be, without applying it")
    tries.add_argument("--policy", metavar="NAME", help="under this policy")
    tries.add_argument("--weight", metavar="NUMBER", help="with this weight of the job")
    tries.add_argument("--target", metavar="VALUE", help="with this value of its metric as its target")
    parser.set_defaults(run=lambda options: run_explain(options, connect))


def run_explain(options: argparse.Namespace, connect: Connect) -> int:
    """Show why a job has its class."""
    from controller.wire import Explanation

    changes = {name: getattr(options, name) for name in ("policy", "weight", "target")}
    query = {name: value for name, value in changes.items() if value is not None}
    answer = connect(options).get(f"/v1/jobs/{quote(options.job)}/explain", Explanation, query)
    if options.json:
        return show_document(answer)
    tried = [("applied", f"no: as it would be with {' and '.join(f'{k} {v}' for k, v in query.items())}")]
    return show_facts([*(tried if query else []), *_facts(answer)])


def _facts(answer: Explanation) -> Iterator[tuple[str, str]]:
    """Yields what is known of the job, by name."""
    yield "job", answer.job
    if answer.found is not None:
        yield from _found(answer.found)
    yield "policy", answer.policy
    yield "class", f"{answer.service_class} (band {answer.position})"
    yield "reason", answer.reason
    yield "before it", ", ".join(answer.jobs_before) or "none"
    if answer.bottleneck_port is None:
        yield "bottleneck", "no demand"
    else:
        yield "bottleneck", f"{answer.bottleneck_port}, {answer.bottleneck_seconds_per_iteration:.4g} s an iteration"
    for port in answer.ports:
        yield from _waits(port)
    yield "iterations", f"{answer.iterations_done:g} done, {answer.iterations_left:g} left"
    if answer.target is not None:
        yield "target", f"{answer.target:.4g}"
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
    """Yields whom a job waits for at a port, and with whom it shares the port."""
    if port.before:
        yield "waits", f"at {port.port} for: {_named(port.before, port.before_count)}"
    if port.alike:
        yield "shares", f"{port.port} with: {_named(port.alike, port.alike_count)}"


def _named(jobs: Sequence[JobAtPort], count: int) -> str:
    named = [f"{each.job} (class {each.service_class}) {each.seconds_left:.3g} s" for each in jobs[:_NAMED]]
    more = [f"{count - len(named)} more"] if count > len(named) else []
    return ", ".join(named + more)
