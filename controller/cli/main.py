"""``trainyard``: the operator's command, a client of the controller's REST API. Other packages add commands to it.

Exit status: 0 done, 1 failed, 2 wrong input. ``--json`` prints one JSON document on stdout and nothing else there.
A package adds a command by an entry point of the group ``trainyard.commands`` with the command's name. It is a callable
that gets argparse's subparsers, adds its own parser, and sets ``run`` on it: a callable from the parsed arguments to an
exit status. ``trainyard --help`` loads all of them, so such a module should import slow packages in ``run`` only.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import entry_points, version
from pathlib import Path
from typing import TYPE_CHECKING

from controller.cli import (
    audit_command,
    certs_command,
    constraints_command,
    env_command,
    events_command,
    families_command,
    hosts_command,
    pause_command,
    reload_command,
    switch_config_command,
    token_command,
)
from controller.cli.console import command as console_command
from controller.cli.explain import command as explain_command
from controller.cli.extras import what_is_missing
from controller.cli.ordering import order_options
from controller.cli.output import CommandError, fail, show_beside, show_document, show_facts, show_table
from controller.cli.top import command as top_command
from controller.quantities import duration

if TYPE_CHECKING:
    from controller.cli.client import Client
    from controller.wire import JobState, SwitchState

GROUP = "trainyard.commands"
DEFAULT_URL = "http://127.0.0.1:8080"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    if any(argument.partition("=")[0] == "--token" for argument in given):
        return fail(
            "--token is refused: everybody can read it in the process list; use --token-file or TRAINYARD_TOKEN", 2
        )
    options = parser(given).parse_args(given)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
    except CommandError as error:
        return fail(str(error), error.status)
    except ModuleNotFoundError as error:
        missing = what_is_missing(given[0], error)
        if missing is None:
            raise
        return fail(missing, 1)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return status


def parser(given: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Returns the parser of the command line, with the commands of other packages where ``given`` may need them."""
    created = argparse.ArgumentParser(prog="trainyard", description="See and steer a Trainyard controller.")
    created.add_argument("--version", action="version", version=f"trainyard {version('trainyard')}")
    commands = created.add_subparsers(metavar="COMMAND", required=True)
    remote = _remote_options()

    jobs = commands.add_parser("jobs", parents=[remote], help="the jobs and their classes")
    jobs.set_defaults(run=run_jobs)

    plan = commands.add_parser("plan", parents=[remote], help="the plan in force, or what another policy would do")
    plan.add_argument("--policy", metavar="NAME", help="plan by this policy, without applying it")
    plan.set_defaults(run=run_plan)

    explain_command.add_command(commands, remote, _client)
    env_command.add_command(commands, remote, _client)
    families_command.add_command(commands, remote, _client)
    hosts_command.add_command(commands, remote, _client)

    audit_command.add_command(commands, remote, _client)
    console_command.add_command(commands, remote, _client)
    events_command.add_command(commands, remote, _client)
    pause_command.add_command(commands, remote, _client)
    reload_command.add_command(commands, remote, _client)
    top_command.add_command(commands, remote, _client)

    probe = commands.add_parser("probe", parents=[remote], help="the switches, and whether their queues are proven")
    probe.set_defaults(run=run_probe)

    order_options.add_command(commands)

    check = commands.add_parser("check-config", help="check a settings file, without starting anything")
    check.add_argument("file", type=Path, metavar="FILE", help="the settings file")
    check.add_argument("--json", action="store_true", help="print the settings with all defaults as JSON")
    check.set_defaults(run=run_check_config)

    certs_command.add_command(commands)

    token_command.add_command(commands)

    constraints_command.add_command(commands)

    switch_config_command.add_command(commands)

    start = commands.add_parser("controller", help="start the controller in this terminal (ryu-manager)")
    start.add_argument(
        "--config", type=Path, metavar="FILE", help="the settings file; default: TRAINYARD_CONFIG, or none"
    )
    start.set_defaults(run=run_controller)

    if given and given[0] in commands.choices:
        return created  # other packages may be slow to load
    others = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    named = [entry for entry in others if given and entry.name == given[0]]
    for entry in named or others:
        try:
            entry.load()(commands)
        except Exception as error:  # one broken package must not take the others' commands away
            fail(f"the command {entry.name!r} is left out: {type(error).__name__}: {error}", 0)
    return created


def _remote_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--url",
        default=os.environ.get("TRAINYARD_URL", DEFAULT_URL),
        help=f"where the controller is; default: TRAINYARD_URL, or {DEFAULT_URL}",
    )
    options.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="the file with the API's token; default: the value of TRAINYARD_TOKEN",
    )
    options.add_argument(
        "--ca",
        type=Path,
        default=os.environ.get("TRAINYARD_CA"),
        metavar="FILE",
        help="trust this certificate for https; default: TRAINYARD_CA",
    )
    options.add_argument(
        "--certificate", type=Path, metavar="FILE", help="show this client certificate, in the place of a token"
    )
    options.add_argument(
        "--key", type=Path, metavar="FILE", help="the private key of --certificate, without a password"
    )
    options.add_argument("--json", action="store_true", help="print one JSON document")
    return options


def _client(options: argparse.Namespace) -> Client:
    from controller.cli.client import Client

    token = os.environ.get("TRAINYARD_TOKEN")
    if options.token_file is not None:
        try:
            token = options.token_file.read_text().strip()
        except (OSError, UnicodeError) as error:
            raise CommandError(f"{options.token_file}: cannot be read: {error}", 2) from None
    return Client(options.url, token, options.ca, options.certificate, options.key)


def run_jobs(options: argparse.Namespace) -> int:
    """Show the jobs and their classes."""
    from controller.wire import JobList

    answer = _client(options).get("/v1/jobs", JobList)
    if options.json:
        return show_document(answer)
    any_is_found = any(job.parts for job in answer.jobs)
    rows = [
        (
            job.id,
            f"{job.state}, diverged" if job.diverged else job.state,
            "-" if job.service_class is None else job.service_class,
            _done(job),
            _metric(job),
            job.spec.stage or "-",
            *([_found_by(job)] if any_is_found else []),
        )
        for job in answer.jobs
    ]
    titles = ("job", "state", "class", "iterations", "metric", "stage", *(["found by"] if any_is_found else []))
    return show_table(titles, rows)


def _done(job: JobState) -> str:
    """Returns how far a job is; epochs are named."""
    total = f"/{job.spec.iterations:g}" if job.spec.iterations is not None else ""
    return f"{job.iterations_done:g}{total}" + (" epochs" if job.spec.unit == "epoch" else "")


def _found_by(job: JobState) -> str:
    """Returns what has started a job that agents have found, and on how many hosts; - for another job."""
    if not job.parts:
        return "-"
    launcher = next((part.launcher for part in job.parts.values() if part.is_first), None)
    known = launcher or next(iter(job.parts.values())).launcher
    return f"{known} on {len(job.parts)} host{'s' if len(job.parts) > 1 else ''}"


def _metric(job: JobState) -> str:
    """Returns the metric of a job, and the value that its user calls done."""
    if job.spec.target is None:
        return "-" if job.last_metric is None else f"{job.spec.metric.name} {job.last_metric:.4g}"
    latest = "none yet" if job.last_metric is None else f"{job.last_metric:.4g}"
    return f"{job.spec.metric.name} {latest}, target {job.spec.target:.4g}"


def run_plan(options: argparse.Namespace) -> int:
    """Show the plan in force, or the plan of another policy."""
    from controller.wire import PlanView

    query = {"policy": options.policy} if options.policy is not None else {}
    view = _client(options).get("/v1/plan", PlanView, query)
    if options.json:
        return show_document(view)
    bound = "-" if view.lower_bound_seconds is None else f"{duration(view.lower_bound_seconds)}"
    word = "" if view.applied else " (a newer plan is refused)" if view.errors else " (not applied)"
    show_facts(
        [
            ("policy", view.policy + word),
            *(("refused", error) for error in view.errors),
            *([("degraded", view.degraded)] if view.degraded is not None else []),
            ("epoch", str(view.epoch)),
            ("age", duration(view.age_seconds)),
            ("objective", f"{duration(view.objective_seconds)} (no order is below {bound})"),
            *([("inversions", f"{view.inversions} pairs of jobs meet and share a class")] if view.inversions else []),
        ]
    )
    rows = [
        (position, view.classes[job], job, view.reasons.get(job, ""))
        for position, band in enumerate(view.order)
        for job in band
    ]
    return show_table(("band", "class", "job", "reason"), rows)


def run_probe(options: argparse.Namespace) -> int:
    """Show the switches and whether their queues are proven; returns 1 where one is not, or there is no switch."""
    from controller.wire import Status

    status = _client(options).get("/v1/status", Status)
    proven = bool(status.switches) and all(_standing(switch)[0] == "ready" for switch in status.switches)
    if options.json:
        show_document(status)
        return 0 if proven else 1
    rows: list[tuple[object, ...]] = []
    for switch in status.switches:
        rows.append((switch.dpid, "all", *_standing(switch)))
        for port in switch.ports:
            counts = " ".join(f"{queue}:{count}" for queue, count in sorted(port.packets.items()))
            word = "proven" if port.problem is None else "not proven"
            rows.append((switch.dpid, f"{port.port} {port.name}", word, port.problem or f"packets {counts}"))
    show_table(("switch", "port", "state", "detail"), rows)
    if not status.switches:
        return fail("no switch has connected", 1)
    return 0 if proven else 1


def _standing(switch: SwitchState) -> tuple[str, str]:
    """Returns the state of a switch in a word, and the reason."""
    if not switch.ready:
        return "not ready", switch.reason or "-"
    if not switch.ports:
        return "not proven", "it is used all the same: probe is false in the controller's settings"
    if any(port.problem is not None for port in switch.ports):
        return "partly ready", "; ".join(switch.problems)
    return "ready", "; ".join(switch.problems) or "-"


def run_check_config(options: argparse.Namespace) -> int:
    """Check a settings file; returns 2, and prints a line for each fault, where it is wrong."""
    from controller.access.tokens.file import read_tokens
    from controller.config.config import ConfigError, load_config
    from controller.config.dscp_costs import costs
    from controller.config.needs import needs

    try:
        config = load_config(options.file)
        if config.api.tokens_file is not None:
            read_tokens(config.api.tokens_file, config.host_names)
    except ConfigError as error:
        return fail(str(error), 2, prefix="")
    notes = [("enforce", sentence) for sentence in needs(config)]
    notes += [("dscp", sentence) for sentence in costs(config)]
    if options.json:
        for name, sentence in notes:
            show_beside(f"{name}: {sentence}")
        return show_document(config)
    return show_facts([(str(options.file), "all settings are right"), *notes])


def run_controller(options: argparse.Namespace) -> int:
    """Become the controller."""
    if options.config is not None:
        from controller.config.config import ConfigError, load_config

        try:
            load_config(options.config)
        except ConfigError as error:  # the same message as the controller's, but seconds earlier
            return fail(str(error), 2)
        os.environ["TRAINYARD_CONFIG"] = str(options.config)
    os.execv(sys.executable, [sys.executable, "-m", "controller.__main__"])  # noqa: S606 - no shell, and the same interpreter


if __name__ == "__main__":
    sys.exit(main())
