"""What the command prints, run in the test itself: in a box a process of its own would take seconds to start."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from controller.cli.main import main


def printed(*arguments: str) -> str:
    """Returns what ``trainyard`` prints with these arguments. Raises AssertionError where its status is not 0."""
    with redirect_stdout(StringIO()) as out:
        assert main(arguments) == 0, arguments
    return out.getvalue()
