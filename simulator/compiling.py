"""The compiled loops before they are needed: compiled once and kept, while whoever waits is told.

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


def prepare(tell: Announce = lambda _line: None) -> None:
    """Load the compiled loops, or compile and keep them: before time is taken, before all processes do it at once.

    ``tell`` gets a sentence where something has to be compiled, and another when it is done.
    """
    teller = _Announcer(tell)
    with compilations(teller.begins):
        _use_everything()
    teller.end()


class _Announcer:
    """Says that functions are compiled, when the first is."""

    def __init__(self, tell: Announce) -> None:
        self._tell = tell
        self._began: float | None = None

    def begins(self, _name: str) -> None:
        if self._began is None:
            self._began = time.perf_counter()
            often = "once; if it is stopped, the next time goes on from there"
            if jit.kept() is None:
                often = "each time, for no folder to keep them in can be written to (NUMBA_CACHE_DIR names one)"
            self._tell(
                f"compiling the simulator's loops, {_left()} of {len(jit.functions)} functions: half a minute or more, "
                f"{often}"
            )

    def end(self) -> None:
        if self._began is not None:
            self._tell(f"compiled in {time.perf_counter() - self._began:.0f} s")


def _left() -> int:
    """How many functions have not been compiled yet, by what is kept on disk."""
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


def main() -> int:
    """Compile, and say so on stderr."""

    def tell(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    prepare(tell)
    return 0


if __name__ == "__main__":
    sys.exit(main())
