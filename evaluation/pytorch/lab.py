"""What the labs of PyTorch jobs have in common: a request and a result that are JSON on disk, and where it runs.

Where the kernel has no Open vSwitch datapath a lab runs itself again inside a User-Mode Linux box.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar

from pydantic import TypeAdapter

from topologies.box import mappings
from topologies.box.datapath import Datapath, Wanted, choose, inside_box
from topologies.errors import LabError, one_line_errors
from topologies.frameworks import interpreter
from topologies.lab import boxed
from topologies.lab.results import save

Q = TypeVar("Q")
A = TypeVar("A")


@dataclass(frozen=True, slots=True)
class Here:
    """What switches run on. ``kind``: as this process sees it; ``datapath``: as results call it, the box told apart."""

    kind: Literal["kernel", "user"]

    @property
    def datapath(self) -> Datapath:
        """One of ``Datapath``."""
        return "uml" if inside_box() and self.kind == "kernel" else self.kind


@dataclass(frozen=True, slots=True)
class TorchLab(Generic[Q, A]):
    """A lab: a module ``module`` whose ``main`` runs it inside a box, of ``memory``.

    ``work`` runs a request of type ``asked`` here, leaves logs in a folder and returns a result of type ``answered``.
    The result is saved beside the logs in the file ``result``.
    """

    module: str
    memory: str
    result: str
    asked: type[Q]
    answered: type[A]
    work: Callable[[Q, Here, Path], A]

    def run(self, request: Q, wanted: Wanted, results: Path, *, stop: threading.Event | None = None) -> A:
        """Run a request. ``stop`` ends a lab in a box. Raises one of EXPECTED_ERRORS."""
        interpreter("PyTorch")
        chosen = choose(wanted)
        with one_line_errors():
            results = results.resolve()
            results.mkdir(parents=True, exist_ok=True)
            (results / self.result).unlink(missing_ok=True)
            if chosen == "uml":
                self._run_boxed(request, results, stop)
                return self.read(results)
            answer = self.work(request, Here(chosen), results)
            save(results / self.result, answer)
            return answer

    def _run_boxed(self, request: Q, results: Path, stop: threading.Event | None) -> None:
        with mappings.room() as enough:
            try:
                boxed.run(self.module, request, results, memory=self.memory, stop=stop)
            except LabError as error:
                if enough:
                    raise
                raise LabError(f"{error} ({mappings.advice()})") from error

    def read(self, results: Path) -> A:
        """Read the result in a folder. Raises OSError, ValueError."""
        return TypeAdapter(self.answered).validate_json((results / self.result).read_bytes())

    def main(self) -> int:
        """Inside the box: run the request in the results folder. Returns the exit status."""
        return boxed.main(self.asked, lambda request, results: self.run(request, "kernel", results))
