"""Standard output for tables and for lines that are read by people."""

from __future__ import annotations

import os
import sys

from rich.console import Console

_PIPE_COLUMNS = 1000
"""Wider than any table: rich takes a pipe for 80 columns, and would cut cells."""


def output() -> Console:
    """Return standard output, which is as wide as the terminal. In a pipe or a file each table has the width it needs.

    The environment variable COLUMNS sets another width.
    """
    return Console(width=None if sys.stdout.isatty() or "COLUMNS" in os.environ else _PIPE_COLUMNS)
