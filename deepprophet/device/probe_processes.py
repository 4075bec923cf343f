"""Starts the processes of ``probe`` that a calibration needs, and hears what they tell."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from deepprophet.errors import ProphetError

PATIENCE_SECONDS = 300.0


@contextmanager
def neighbours_training(neighbours: int, threads: int) -> Iterator[Callable[[str], None]]:
    """Processes that train the model that they are told, or rest, beside this one."""
    with ExitStack() as stack:
        running = [stack.enter_context(trained("neighbour", str(threads))) for _ in range(neighbours)]

        def tell(name: str) -> None:
            for tell_process in running:
                tell_process(name)

        yield tell


@contextmanager
def trained(*arguments: str) -> Iterator[Callable[[str], dict[str, Any]]]:
    """A process that answers each line with a JSON object. It raises ProphetError where it ends by itself.

    It has loaded PyTorch by then: what is measured meanwhile would have to share the processors with that.
    """
    process = probe(*arguments, talks=True)

    def answer(line: str) -> dict[str, Any]:
        assert process.stdout is not None
        text = process.stdout.readline()
        if not text:
            raise ProphetError(f"a process that trains models for the calibration ended by itself ({line})")
        content: dict[str, Any] = json.loads(text)
        return content

    def tell(line: str) -> dict[str, Any]:
        assert process.stdin is not None
        with suppress(BrokenPipeError):
            process.stdin.write(f"{line}\n")
            process.stdin.flush()
        return answer(line)

    try:
        answer("start")
        yield tell
    finally:
        process.kill()
        process.communicate()


def probe(*arguments: str, talks: bool = False) -> subprocess.Popen[str]:
    """One of the processes of ``probe``; ``talks``: it is told lines on its standard input."""
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "deepprophet.device.probe", *arguments],
        stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if talks else subprocess.PIPE,
        text=True,
    )


def lines(*processes: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What the first tells, a JSON object a line; all of them must end well. Raises ProphetError."""
    output = ""
    try:
        for number, process in enumerate(processes):
            stdout, stderr = process.communicate(timeout=PATIENCE_SECONDS)
            if process.returncode:
                last = (stderr.strip().splitlines() or [f"status {process.returncode}"])[-1]
                raise ProphetError(f"what an exchange costs could not be measured: {last}")
            output = stdout if number == 0 else output
    except subprocess.TimeoutExpired:
        raise ProphetError("what an exchange costs could not be measured: it did not end") from None
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    return [json.loads(line) for line in output.splitlines()]
