"""``python -m host_reporter.training.job_template``: the job file of the launch whose environment it is called in.

For a prolog of Slurm's, or a script that starts torchrun: job, hosts and traffic of an all-reduce ring over the hosts,
as a job file on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

from host_reporter.training.family import MAX_NAME
from host_reporter.training.launch import NAME, Launch, find, job_name
from host_reporter.training.nodelist import expand

WRONG_INPUT = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the job file. Returns 0: done; 2: the environment does not tell enough, or an option is wrong."""
    parser = argparse.ArgumentParser(
        prog="python -m host_reporter.training.job_template",
        description="Print the job file of the torchrun or Slurm job whose environment this is.",
    )
    parser.add_argument("--job", metavar="ID", help="the job's id (TRAINYARD_JOB, torchrun's run id, slurm-NUMBER)")
    parser.add_argument("--hosts", metavar="LIST", help="its hosts, as in gpu[01-04],gpu07 (those of Slurm's job)")
    parser.add_argument("--bytes", metavar="N", type=float, default=0.0, help="bytes of gradients an iteration")
    parser.add_argument("--iterations", metavar="N", type=float, help="the length of the run")
    parser.add_argument(
        "--family", metavar="NAME", help="runs of the same training (Slurm's job name, torchrun's run id)"
    )
    parser.add_argument("--target", metavar="VALUE", type=float, help="the value of the metric that counts as done")
    options = parser.parse_args(arguments)
    launch = find(os.environ)
    job = job_name(options.job) if options.job is not None else launch.job
    if job is None:
        return _refuse("the environment does not name the job; give --job, or run this where Slurm or torchrun sets it")
    try:
        hosts = _hosts(options.hosts, launch)
    except ValueError as error:
        return _refuse(str(error))
    if (problem := _problem(options)) is not None:
        return _refuse(problem)
    document = ring(job, hosts, options.bytes, launch, options.iterations)
    if options.target is not None:
        document["spec"]["target"] = options.target
    family = options.family if options.family is not None else launch.name
    if family is not None:
        document["spec"]["family"] = family
    sys.stdout.write(json.dumps(document, indent=1) + "\n")
    return 0


def ring(
    job: str, hosts: Sequence[str], gradient_bytes: float, launch: Launch, iterations: float | None = None
) -> dict[str, Any]:
    """A job file of an all-reduce ring: each host sends to the next one what a ring of all the ranks does.

    With n ranks every rank sends 2 (n - 1) / n of the gradients on; between hosts go those of one rank each.
    """
    ranks = max(launch.world_size, len(hosts))
    sent = 2 * (ranks - 1) / ranks * gradient_bytes
    spec: dict[str, Any] = {"tasks": [{"role": "peer", "host": host} for host in hosts]}
    if sent and len(hosts) > 1:
        spec["demand"] = [
            {"src": host, "dst": hosts[(index + 1) % len(hosts)], "bytes": sent} for index, host in enumerate(hosts)
        ]
    if iterations is not None:
        spec["iterations"] = iterations
    return {"id": job, "spec": spec}


def _problem(options: argparse.Namespace) -> str | None:
    """Returns what is wrong with a value of an option; None: nothing is."""
    family = options.family
    is_right = {
        "--bytes: it must be from 0 to 1e18": 0 <= options.bytes <= 1e18,
        "--iterations: it must be from 1e-9 to 1e15": options.iterations is None or 1e-9 <= options.iterations <= 1e15,
        f"--family: it must have at most {MAX_NAME} characters, and no control characters": family is None
        or (len(family) <= MAX_NAME and family.isprintable()),
        "--target: it must be from -1e30 to 1e30": options.target is None or abs(options.target) <= 1e30,
    }
    return next((problem for problem, right in is_right.items() if not right), None)


def _hosts(listed: str | None, launch: Launch) -> tuple[str, ...]:
    """The job's hosts: those of ``--hosts``, else those that the environment tells. Raises ValueError."""
    if listed is None:
        origin, hosts = "the nodes of Slurm's job", launch.hosts
    else:
        origin = "--hosts"
        try:
            hosts = tuple(dict.fromkeys(expand(listed)))
        except ValueError as error:
            raise ValueError(f"{origin}: {error}") from error
    if not hosts:
        raise ValueError("the environment does not name the job's hosts; give --hosts, or run this inside a Slurm job")
    # What a job file cannot have is said here, where its author is, and not by the agent later.
    if wrong := next((host for host in hosts if not NAME.fullmatch(host)), None):
        raise ValueError(
            f"{origin}: {wrong[:80]!r} is no name of a host in a job file, which has 1 to 63 letters, digits, dots, "
            "dashes and underscores, and begins with a letter or digit"
        )
    return hosts


def _refuse(problem: str) -> int:
    sys.stderr.write(f"job_template: {problem}\n")
    return WRONG_INPUT


if __name__ == "__main__":
    sys.exit(main())
