"""``trainyard`` starts fast: what takes long to load is loaded by the command that needs it, when it runs."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.metadata import entry_points
from typing import get_args

import pytest

from controller.cli.main import GROUP
from controller.cli.ordering import order_options
from controller.ordering.classes import Assign

SLOW = {"scipy", "numba", "numpy", "torch", "ryu", "networkx", "matplotlib", "eventlet", "mininet", "pydantic"}
COMMANDS = ["jobs", "plan", "explain", "probe", "order", "check-config", "switch-config", "controller"]
COMMANDS += sorted(entry.name for entry in entry_points(group=GROUP))
NOBODY = "http://127.0.0.1:1"
LOADED = """
import sys
from controller.cli.main import main
try:
    status = main(sys.argv[1:])
except SystemExit as stopped:
    status = stopped.code
print(*sorted({name.partition(".")[0] for name in sys.modules}))
sys.exit(status)
"""


def loaded(*arguments: str) -> tuple[int, set[str]]:
    """The exit status of a command, and the packages that it loaded."""
    command = [sys.executable, "-c", LOADED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, set(done.stdout.splitlines()[-1].split())


def test_the_help_lists_all_commands_and_loads_nothing_that_takes_long() -> None:
    status, packages = loaded("--help")
    assert status == 0
    assert {"simulator", "topologies", "deepprophet"} <= packages, "all of them are asked for their commands"
    assert packages & SLOW == set()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_commands_help_loads_nothing_that_takes_long(command: str) -> None:
    status, packages = loaded(command, "--help")
    assert (status, packages & SLOW) == (0, set())


def test_a_command_that_asks_the_controller_loads_no_solver() -> None:
    status, packages = loaded("jobs", "--url", NOBODY)
    assert (status, packages & SLOW) == (1, {"pydantic"}), "that is for the messages"


def test_the_help_takes_a_few_times_what_python_itself_takes() -> None:
    def processor_seconds(*command: str) -> float:
        found = []
        for _ in range(3):
            process = subprocess.Popen([sys.executable, *command], stdout=subprocess.DEVNULL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            found.append(usage.ru_utime + usage.ru_stime)
        return min(found)

    assert processor_seconds("-m", "controller.cli.main", "--help") < 10 * processor_seconds("-c", "import argparse")


def test_the_ways_to_cut_classes_are_those_of_the_planner() -> None:
    parser = argparse.ArgumentParser()
    order_options.add_command(parser.add_subparsers())
    for assign in get_args(Assign):
        assert parser.parse_args(["order", "f", "--policy", "p", "--assign", assign]).assign == assign
    with pytest.raises(SystemExit):
        parser.parse_args(["order", "f", "--policy", "p", "--assign", "other"])
