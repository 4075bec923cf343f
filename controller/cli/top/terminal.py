"""A terminal while a command has the whole of it: frames go out, keys come in, and all is as before at the end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from types import FrameType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from controller.cli.top.columns import Line
from controller.cli.top.frame import Paper, paper_of

_LOCAL_MODES, _CHARACTERS = 3, 6
"""The places of the local modes and of the special characters in what ``termios.tcgetattr`` returns."""


class Terminal:
    """The terminal of this process. Use it as a context: what is shown before and after it stays."""

    def __init__(self) -> None:
        self._console = Console()
        self._live = Live(console=self._console, screen=True, auto_refresh=False, vertical_overflow="crop")
        self._has_keys = sys.stdin is not None and sys.stdin.isatty()

    @property
    def is_usable(self) -> bool:
        """Whether whole frames can be shown there."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    @property
    def paper(self) -> Paper:
        """Its present size."""
        width, height = self._console.size
        return paper_of(self._console.encoding, width, height)

    @contextlib.contextmanager
    def taken(self) -> Iterator[Terminal]:
        """Take the whole terminal, and give it back as it was, also where SIGTERM or an error ends the command."""
        with _ending_by_sigterm(), self._reading_keys(), self._live:
            yield self

    def show(self, lines: Sequence[Line]) -> None:
        """Show lines in the place of those before."""
        text = Text("\n", no_wrap=True, overflow="crop").join(Text.assemble(*line) for line in lines)
        text.no_wrap, text.overflow = True, "crop"
        self._live.update(text, refresh=True)

    def key(self, seconds: float) -> str:
        """Returns the keys that are pressed within ``seconds``; an empty text for none."""
        if not self._has_keys:
            select.select([], [], [], seconds)
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], seconds)
        if not ready:
            return ""
        pressed = os.read(sys.stdin.fileno(), 64)
        self._has_keys = bool(pressed)  # at the end of the input there will be no more
        return pressed.decode(errors="replace")

    @contextlib.contextmanager
    def _reading_keys(self) -> Iterator[None]:
        """Let keys come as they are pressed, and not be shown. Ctrl-C still ends the command."""
        if not self._has_keys:
            yield
            return
        before = termios.tcgetattr(sys.stdin)
        modes = termios.tcgetattr(sys.stdin)
        modes[_LOCAL_MODES] &= ~(termios.ICANON | termios.ECHO)
        # A command that is stopped would leave its frame in the terminal of the shell.
        modes[_CHARACTERS][termios.VSUSP] = b"\0"
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _ending_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the command as an error does, so that the terminal is given back."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
