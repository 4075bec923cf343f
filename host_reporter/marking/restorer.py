"""A long-lived ``iptables-restore``: one process for all changes and looks, since starting one costs far more.

The tool commits each table when it has read it, and with ``-v`` it prints the comments in its input. So a comment after
each change confirms that the change was carried out. The tool lists rules too, where ``iptables-save`` would be another
process. It holds the lock of the tables only during a change.
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
"""This Debian package has the tool."""

ANSWER_SECONDS = 20.0
"""A change that is not answered within this time has failed."""

_END_SECONDS = 1.0
"""A process that does not end within this time is killed."""


class Restorer:
    """Makes changes through a process of ``variant``, which is started when needed. It is not thread-safe."""

    def __init__(self, variant: str) -> None:
        self._variant = variant
        self._process: subprocess.Popen[bytes] | None = None
        self._terminal = -1

    def commit(self, text: str) -> None:
        """Carry out one table's changes (``*table`` to ``COMMIT``), all or nothing. Raises ToolError."""
        self._output(text)

    def listing(self, table: str) -> str:
        """Returns all rules of a table as ``iptables -S -v`` prints them. Raises ToolError."""
        return self._output(f"*{table}\n-S -v\nCOMMIT\n").decode(errors="replace")

    def _output(self, text: str) -> bytes:
        """Returns what the tool prints while it carries ``text`` out. Raises ToolError."""
        if self._process is not None and self._process.poll() is not None:
            self._end()  # something has killed the process
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
        # The tool may wait for the lock without a limit, because this class has its own. With a limit the tool sets an
        # alarm, which also interrupts its reading, and it would end then.
        command = [f"{self._variant}-restore", "--noflush", "-v", "-w"]
        # On a terminal the tool writes each line at once. Into a pipe it would write when its buffer is full.
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
        """Returns what comes before the answer; None if the process ends, or is silent for ANSWER_SECONDS."""
        output = b""
        deadline = time.monotonic() + ANSWER_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            if not select.select([self._terminal], [], [], left)[0]:
                return None
            try:
                output += os.read(self._terminal, 65536)
            except OSError:
                # The process has ended, which closes the terminal.
                return None
            if output.endswith(answer):
                return output.removesuffix(answer)
        return None

    def _end(self) -> str:
        """End the process. Returns its error message."""
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
