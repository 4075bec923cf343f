"""A long-lived ``iptables-restore``: one process for all changes and looks, since starting one costs far more.

The tool commits each table as it reads it, and with ``-v`` repeats comments: one after every change is the answer
that it was carried out. It lists rules too, where ``iptables-save`` would be another process. It holds the tables' lock
during a change alone.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import subprocess
import time
import tty

from host_reporter import tools
from host_reporter.tools import ToolError

PACKAGE = "iptables"
"""The package that brings the tool."""

ANSWER_SECONDS = 20.0
"""A change that is not answered within this time has failed."""

_END_SECONDS = 1.0
"""A process that does not end within this time is killed."""


class Restorer:
    """Changes through one process of ``variant``; started when needed, anew after a refusal. Not for threads."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1

    def commit(self, text: str) -> None:
        """Carry out one table's changes (``*table`` to ``COMMIT``), all or nothing. Raises ToolError."""
        self._output(text)

    def listing(self, table: str) -> str:
        """Return all rules of a table as ``iptables -S -v`` prints them. Raises ToolError."""
        return self._output(f"*{table}\n-S -v\nCOMMIT\n").decode(errors="replace")

    def _output(self, text: str) -> bytes:
        """Return what the tool prints while it carries ``text`` out. Raises ToolError."""
        if self._process is not None and self._process.poll() is not None:
            self._end()  # another program has killed it
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None and process.stdin is not None
        # No rule of somebody else that is listed can have it in its comment.
        answer = f"# {secrets.token_hex(8)}\n"
        output = None
        try:
            process.stdin.write(f"{text}{answer}".encode())
            process.stdin.flush()
            output = self._until(answer.encode())
        except OSError:
            pass
        if output is None:
            raise ToolError(self._end())
        return output

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._end()

    def _start(self) -> None:
        # It may wait for the lock as long as it likes: we do not. With a limit of its own it sets an alarm, which then
        # interrupts its reading, and it takes that for the end.
        command = [f"{self._variant}-restore", "--noflush", "-v", "-w"]
        # A terminal, so that the answers come line by line instead of when a buffer is full.
        self._terminal, other = os.openpty()
        tty.setraw(other)
        try:
            self._process = tools.start(command, package=PACKAGE, stdout=other, stderr=subprocess.PIPE)
        except ToolError:
            os.close(self._terminal)
            raise
        finally:
            os.close(other)

    def _until(self, answer: bytes) -> bytes | None:
        """Return what comes before the answer; None if the process ends, or is silent for ANSWER_SECONDS."""
        output = b""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._terminal], [], [], left)[0]:
                return None
            try:
                output += os.read(self._terminal, 65536)
            except OSError:
                # The other side is closed: the process has ended.
                return None
            if output.endswith(answer):
                return output.removesuffix(answer)
        return None

    def _end(self) -> str:
        """End the process. Returns its complaint."""
        process, self._process = self._process, None
        assert process is not None and process.stdin is not None and process.stderr is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        complaint = tools.complaint(process.stderr.read().decode(errors="replace"))
        process.stderr.close()
        os.close(self._terminal)
        return complaint or f"{self._variant}-restore ended with status {process.returncode}"
