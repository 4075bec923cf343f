"""Chooses the datapath of the emulated switches: this kernel's Open vSwitch, or that of a User-Mode Linux box.

    python -m topologies.box.datapath [--datapath auto|kernel|uml|user] [--] COMMAND...

runs a command where it has a kernel datapath: directly, or in the User-Mode Linux box.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Literal, get_args

from topologies import tools
from topologies.box import box

Wanted = Literal["auto", "kernel", "uml", "user"]
Datapath = Literal["kernel", "uml", "user"]
IN_BOX = "TRAINYARD_BOX"
"""This environment variable is 1 for all that runs inside a box."""


class DatapathError(RuntimeError):
    """This machine does not have the wanted datapath. The message says why, and what would help."""


def inside_box() -> bool:
    """Returns whether this process runs in a User-Mode Linux box of Trainyard."""
    return os.environ.get(IN_BOX) == "1"


def kernel_problem() -> str | None:
    """Returns why Open vSwitch's kernel datapath cannot be used here; None where it can."""
    if os.geteuid() != 0:
        return "the kernel datapath needs root"
    with contextlib.suppress(FileNotFoundError):
        tools.run(["modprobe", "-q", "openvswitch"], check=False)
    try:
        listing = tools.run(["ovs-dpctl", "dump-dps"], check=False)
    except FileNotFoundError:
        return "Open vSwitch is not installed: install the package openvswitch-switch (scripts/setup does)"
    return None if listing.returncode == 0 else "this kernel has no Open vSwitch datapath"


def choose(wanted: Wanted = "auto") -> Datapath:
    """Returns the datapath to use: ``kernel`` and ``user`` run here, ``uml`` needs a box to be started.

    Inside a box the answer is ``kernel`` for all but ``user``. Raises DatapathError.
    """
    if wanted == "user":
        if os.geteuid() != 0:
            raise DatapathError("the userspace datapath needs root, for its namespaces; try --datapath uml")
        return "user"
    if inside_box():
        return "kernel"
    problem = kernel_problem() if wanted in {"auto", "kernel"} else "not asked for"
    if problem is None:
        return "kernel"
    if wanted == "kernel":
        raise DatapathError(f"{problem}; try --datapath uml")
    if reason := box.available():
        raise DatapathError(reason if wanted == "uml" else f"{problem}, and {reason}")
    return "uml"


def with_most_processors() -> Wanted:
    """Returns the datapath with most processors for the network: this kernel's, else as root the userspace one.

    A box has one processor. It is for those who are not root.
    """
    return "user" if os.geteuid() == 0 and not inside_box() and kernel_problem() is not None else "auto"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command where it has a kernel datapath of Open vSwitch.

    The exit status is that of the command, 1 where there is no datapath, 130 after Ctrl-C, and 141 where the reader of
    the output is gone.
    """
    parser = argparse.ArgumentParser(prog="python -m topologies.box.datapath", description=main.__doc__)
    parser.add_argument("--datapath", choices=get_args(Wanted), default="auto", help="the datapath to run on")
    parser.add_argument("--memory", default="2G", help="the memory of the box, where one is needed, like 512M or 2G")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND...")
    options = parser.parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    try:
        if choose(options.datapath) == "uml":
            return box.run(command, memory=options.memory)
        return subprocess.run(command, check=False).returncode
    except (DatapathError, box.BoxError) as error:
        sys.stderr.write(f"datapath: {error}\n")
        return 1
    except BrokenPipeError:
        return 128 + signal.SIGPIPE
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
