"""Compiles the simulator's loops before they are needed, keeps the result on disk, and reports the wait.

``python -m simulator.compiling`` does it, as ``scripts/setup``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numba.core.event import Event, Listener, install_listener

from controller.model import Demand, Host
from controller.policies.sebf import Sebf
from simulator.engine import simulate
from simulator.jobs import Compute, SimJob, Transfer, Workload
from simulator.kernel import jit
from simulator.limits import Limits

Announce = Callable[[str], None]
TELL_SECONDS = 10.0
"""Say how far the compilation has got at most so often."""


class Announcer:
    """Reports the compilation when the first function is compiled, and now and then how far it has got."""

    def __init__(self, announce: Announce, clock: Callable[[], float] = time.perf_counter) -> None:
        self._announce = announce
        self._clock = clock
        self._began: float | None = None
        self._told = 0.0
        self._names: set[str] = set()

    def begins(self, name: str) -> None:
        """A function is compiled next."""
        now = self._clock()
        self._names.add(name)
        if self._began is None:
            self._began = self._told = now
            often = "once; if it is stopped, the next time goes on from there"
            if jit.kept() is None:
                often = "each time, for no folder to keep them in can be written to (NUMBA_CACHE_DIR names one)"
            self._announce(
                f"compiling the simulator's loops, {_left()} of {len(jit.functions)} functions: half a minute or more, "
                f"{often}"
            )
        elif now - self._told >= TELL_SECONDS:
            self._told = now
            self._announce(f"still compiling after {now - self._began:.0f} s: {len(self._names)} functions so far")

    def end(self) -> None:
        """All is compiled."""
        if self._began is not None:
            self._announce(f"compiled in {self._clock() - self._began:.0f} s")


def _left() -> int:
    """Return how many functions are not kept on disk yet."""
    folder = jit.kept()
    done = {file.name.rpartition("-")[0] for file in folder.rglob("*.nbi")} if folder is not None else set()
    return sum(_file_name(function.py_func) not in done for function in jit.functions)


def _file_name(function: Any) -> str:
    return f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"


@contextmanager
def compilations(begins: Callable[[str], None]) -> Iterator[None]:
    """Call ``begins`` with the module and name of each function that is compiled in the block, before that."""

    class CompileListener(Listener):
        def on_start(self, event: Event) -> None:
            begins(_file_name(event.data["dispatcher"].py_func))

        def on_end(self, event: Event) -> None:
            pass

    with install_listener("numba:compile", CompileListener()):
        yield


def _use_everything() -> None:
    """Simulate a coflow and a training job, in which each function is called that Python calls."""
    transfer = Transfer((Demand("a", "a", 1.0),))
    jobs = (SimJob("coflow", ((transfer,),)), SimJob("training", ((Compute(1.0), transfer),), iterations=2))
    simulate(Workload("warm", {"a": Host("a")}, jobs), Sebf(), Limits())


def prepare(announce: Announce = lambda _line: None, *, use: Callable[[], None] = _use_everything) -> None:
    """Load the compiled loops, or compile and keep them, before time is measured or many processes need them at once.

    ``announce`` gets a sentence where something has to be compiled, and another when it is done. ``use`` calls each
    function that Python calls.
    """
    announcer = Announcer(announce)
    with compilations(announcer.begins):
        use()
    announcer.end()


def main() -> int:
    """Compile, and say so on stderr."""

    def tell(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    prepare(tell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
