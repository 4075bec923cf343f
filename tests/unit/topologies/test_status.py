"""Ctrl-C ends a long command with one line and status 130."""

from __future__ import annotations

import signal
import subprocess
import sys

from topologies.signals import exit_status

COMMAND = """
import sys, time
from topologies.signals import exit_status

def main():
    print("begun", flush=True)
    time.sleep(60)
    return 0

sys.exit(exit_status(main))
"""


def test_ctrl_c_is_told_in_one_line() -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"stopped\n")


def test_a_status_is_that_of_the_command() -> None:
    assert [exit_status(lambda given=given: given) for given in (0, 1, 2)] == [0, 1, 2]
