"""Runs a lab again inside a box. The results folder carries the request in, and a failure out."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from topologies.box import box
from topologies.errors import LabError
from topologies.lab.lab import EXPECTED_ERRORS
from topologies.lab.results import save

_REQUEST = "request.json"
_FAILURE = "failure.json"

R = TypeVar("R")


def run(module: str, request: Any, results: Path, *, memory: str, stop: threading.Event | None) -> None:
    """Run ``module``, which calls ``main``, in a box with so much ``memory``. Raises LabError, BoxError."""
    save(results / _REQUEST, request)
    (results / _FAILURE).unlink(missing_ok=True)
    status = box.run([sys.executable, "-m", module, str(results)], memory=memory, stop=stop)
    (results / _REQUEST).unlink(missing_ok=True)
    if (failure := results / _FAILURE).exists():
        raise LabError(str(json.loads(failure.read_text())["failure"]))
    if status != 0:
        raise LabError(f"the lab in the box ended with status {status}")


def main(kind: type[R], lab: Callable[[R, Path], object]) -> int:
    """Inside the box: run the lab on the request in the folder that the command line names. Returns the exit status."""
    results = Path(sys.argv[1])
    try:
        lab(TypeAdapter(kind).validate_json((results / _REQUEST).read_bytes()), results)
    except EXPECTED_ERRORS as error:
        (results / _FAILURE).write_text(json.dumps({"failure": str(error)}))
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
