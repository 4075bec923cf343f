"""The same sweep on a Ray cluster. Ray is an extra (``pip install trainyard[ray]``), loaded by who asks for it only."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any

from simulator.errors import InputError
from simulator.sweep.sweep import POLL_SECONDS, Progress, Run, SweepError, Task, run_task

CONNECT_SECONDS = 5.0


def run_all(tasks: Sequence[Task], *, address: str, progress: Progress = lambda _shares: None) -> list[Run]:
    """Run all tasks on the cluster at ``address`` (as ``ray.init`` takes it: ``local`` starts one here).

    The cluster's machines need Trainyard installed in the same version. Raises as ``sweep.run_all``.
    """
    try:
        import ray  # noqa: PLC0415 - an extra
    except ImportError:
        raise SweepError("--ray needs Ray, which is not installed; pip install 'trainyard[ray]' installs it") from None
    _check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    except Exception as error:  # Ray raises ConnectionError, RuntimeError, ValueError and others here
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise SweepError(f"--ray {address}: no Ray cluster answers there: {first}") from None
    try:
        return _run(ray, tasks, progress)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Ray itself waits for minutes where nobody answers."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon:
        return  # "local" and "auto" name no place
    if not (port.isascii() and port.isdigit() and len(port) < 6 and int(port) < 2**16):
        raise InputError(f"--ray {address}: it must be local, auto, or HOST:PORT with a port below {2**16}")
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise SweepError(f"--ray {address}: no Ray cluster answers there: {error}") from None


def _run(ray: Any, tasks: Sequence[Task], progress: Progress) -> list[Run]:
    remote = ray.remote(run_task)
    shares = [0.0] * len(tasks)
    references = [remote.remote(task) for task in tasks]
    numbers = {reference: number for number, reference in enumerate(references)}
    runs: dict[int, Run] = {}
    left = list(references)
    while left:
        done, left = ray.wait(left, num_returns=1, timeout=POLL_SECONDS)
        for reference in done:
            try:
                runs[numbers[reference]] = ray.get(reference)
            except ray.exceptions.RayTaskError as error:
                # What Ray makes of it would say the other machine's frames, too.
                raise error.cause from None
            except ray.exceptions.RayError as error:
                raise SweepError(f"a task of the sweep was lost: {next(iter(str(error).splitlines()), '')}") from None
            shares[numbers[reference]] = 1.0
        progress(shares)
    return [runs[number] for number in range(len(tasks))]
