"""Stdout is the command's own: what a model's code prints meanwhile goes to stderr, so that ``--json`` stays JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

STDOUT, STDERR = 1, 2


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Until it ends. The descriptor is turned too: libraries below Python and started processes write to that."""
    _flush()
    try:
        kept = os.dup(STDOUT)
    except OSError:
        # Whoever started this has closed stdout: there is nothing to keep clean.
        yield
        return
    try:
        os.dup2(STDERR, STDOUT)
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        # What a model's code holds back in Python's own stdout must leave while it still leads to stderr.
        _flush()
        os.dup2(kept, STDOUT)
        os.close(kept)


def _flush() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        # None under a starter without a console; closed by a model's code.
        if stream is not None and not stream.closed:
            stream.flush()
