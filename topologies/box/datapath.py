"""Which datapath the emulated switches run on: the kernel's Open vSwitch, in a box where this kernel has none.

    python -m topologies.box.datapath [--datapath auto|kernel|uml|user] [--] COMMAND...

runs a command where it finds a kernel datapath: directly, or in the User-Mode Linux box.
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

from topologies.box import box

Wanted = Literal["auto", "kernel", "uml", "user"]
Datapath = Literal["kernel", "uml", "user"]
IN_BOX = "TRAINYARD_BOX"
"""Set in the environment of whatever runs inside a box."""


class DatapathError(RuntimeError):
    """The datapath that was asked for is not to be had here; the message says why and what would help."""


def inside_box() -> bool:
    """Whether this process runs in a User-Mode Linux box of ours."""
    return os.environ.get(IN_BOX) == "1"


def kernel_problem() -> str | None:
    """None where the running kernel has Open vSwitch's datapath and we may use it; else why not."""
    if os.geteuid() != 0:
        return "the kernel datapath needs root"
    with contextlib.suppress(FileNotFoundError):
        subprocess.run(["modprobe", "-q", "openvswitch"], capture_output=True, check=False)
    try:
        found = subprocess.run(["ovs-dpctl", "dump-dps"], capture_output=True, check=False)
    except FileNotFoundError:
        return "Open vSwitch is not installed: install the package openvswitch-switch (scripts/setup does)"
    return None if found.returncode == 0 else "this kernel has no Open vSwitch datapath"


def choose(wanted: Wanted = "auto") -> Datapath:
    """The datapath to use: ``kernel`` and ``user`` here, ``uml`` in a box that has to be started.

    Inside a box everything but ``user`` is ``kernel``. Raises DatapathError.
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command where there is a kernel datapath; its exit status, 1 where there is none, 130 after Ctrl-C, 141
    where nobody reads what it says any more.
    """
    parser = argparse.ArgumentParser(prog="python -m topologies.box.datapath", description=main.__doc__)
    parser.add_argument("--datapath", choices=get_args(Wanted), default="auto")
    parser.add_argument("--memory", default="2G", help="memory of the box, where one is needed")
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
